"""What is said of something from a node that was not opened."""

from __future__ import annotations

from skyward.link.data.maker import Refused


def unopened(what: str, error: Exception) -> str:
    """
    Return why something that came from a node was not opened, and what to do.

    Args:
        what: What it is.
        error: What opening it raised.
    """
    if isinstance(error, Refused):
        return (
            f"{what} holds {error.name}, and this machine is trusted with data only. "
            f"Return plain values, arrays or tables; or list the class, {error.listing}. "
            'trust="code" opens everything, and lets the machine\'s owner run any code on this one.'
        )
    return (
        f"{what} cannot be unpickled here: {type(error).__name__}: {error}. "
        "Return plain values, or install the package that its class comes from."
    )
