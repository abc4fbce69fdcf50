"""A module that only a function imports, on the node."""

NAME = "lazy"
