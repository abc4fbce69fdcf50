"""A package of the program."""

from package.sub.deep import NAME as NAME
