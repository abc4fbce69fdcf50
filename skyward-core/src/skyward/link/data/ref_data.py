"""
Refs in a pickle that is opened as data: what a task put and a result names.
"""

from __future__ import annotations

from typing import Any

from skyward.link.data.maker import Maker, Shelf

__all__ = ["shelf"]


def shelf() -> Shelf:
    """Return the name of what makes a Ref."""
    return Shelf.of(("skyward.link.refs", "returned", None, Maker(_returned)))


def _returned(where: Any, sizes: Any) -> Any:
    from skyward.link.refs import returned

    return returned(where, sizes)
