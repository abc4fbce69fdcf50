"""
Refs in a pickle that is opened as data: what a task put and a result names.
"""

from __future__ import annotations

from skyward.link.absent import returned
from skyward.link.data.maker import Maker, Shelf

__all__ = ["shelf"]


def shelf() -> Shelf:
    """Return the name of what makes a Ref."""
    return Shelf.of(("skyward.link.absent", "returned", None, Maker(returned)))
