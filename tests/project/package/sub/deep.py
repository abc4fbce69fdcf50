"""A module deep inside."""

NAME = "deep"
