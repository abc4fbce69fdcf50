"""
The scripts that the store runs, each of them atomically: `.lua` files beside this module.

Those that write begin with `replay.lua`: a write that is sent again because its answer was lost is answered again.
"""

from __future__ import annotations

import hashlib
import pkgutil
from functools import cache
from typing import NamedTuple

__all__ = ["LuaScript", "lua_script"]


class LuaScript(NamedTuple):
    """A script, and the digest that the store knows it by."""

    text: str
    digest: str


@cache
def lua_script(name: str) -> LuaScript:
    """
    Return a script of this room with what stands before it.

    >>> len(lua_script("claim").digest)
    40
    """
    text = _text("replay") + _text(name)
    # Not for secrecy: the store names scripts by it.
    return LuaScript(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _text(name: str) -> str:
    data = pkgutil.get_data(__package__, f"{name}.lua")
    assert data is not None
    lines = data.decode().splitlines(keepends=True)
    return "".join(line for line in lines if not line.lstrip().startswith("--"))
