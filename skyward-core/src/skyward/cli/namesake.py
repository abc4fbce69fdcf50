"""SkyPilot, whose program is called `sky` too."""

from __future__ import annotations

__all__ = ["NOTE", "skypilot_is_installed"]

NOTE = "SkyPilot is installed as well. This is Skyward's sky; skyward is the same program under a name of its own."
"""What is said beside the version and the list of commands where both are installed."""


def skypilot_is_installed() -> bool:
    """Return whether SkyPilot is installed here, without loading it."""
    from importlib.machinery import PathFinder

    # Its package is `sky`; only where there is one, distributions are looked through.
    if PathFinder.find_spec("sky") is None:
        return False
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        distribution("skypilot")
    except PackageNotFoundError:
        return False
    return True
