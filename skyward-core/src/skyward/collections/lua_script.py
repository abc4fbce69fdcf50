"""
The scripts that the store runs, each of them atomically: `.lua` files beside this module.

Those that write begin with `replay.lua`: a write that is sent again because its answer was lost is answered again.
Those that something waits for begin with `waking.lua`.
"""

from __future__ import annotations

import hashlib
import pkgutil
import re
from functools import cache
from typing import NamedTuple

__all__ = ["LuaScript", "lua_script"]

_BEGINS = re.compile("-- Begins with: (.*)[.]$")


class LuaScript(NamedTuple):
    """A script, and the digest that the store knows it by."""

    text: str
    digest: str


@cache
def lua_script(name: str) -> LuaScript:
    """
    Return a script of this room behind those that it names in its first line.

    >>> lua_script("claim").text.splitlines()[0]
    "redis.call('SETNX', KEYS[1], ARGV[1])"
    """
    own = _lines(name)
    before = _BEGINS.match(own[0])
    lines = [line for each in before[1].split(", ") for line in _lines(each)] if before else []
    text = "\n".join(line for line in [*lines, *own] if not line.lstrip().startswith("--"))
    # Not for secrecy: the store names scripts by it.
    return LuaScript(text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())


def _lines(name: str) -> list[str]:
    data = pkgutil.get_data(__package__, f"{name}.lua")
    assert data is not None
    return data.decode().splitlines()
