"""A module beside the program."""

NAME = "sibling"
