"""A module that the program imports when its pool is open."""


def name() -> str:
    """Name this module."""
    return "late"
