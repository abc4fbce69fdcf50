"""
What a value says of itself, alike in every process: what a digest of it is made from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import attrs

__all__ = ["digest_of", "stated"]


def stated(value: object) -> object:
    """
    Return what a value says of itself, as lists, pairs and text; two values that compare equal say the same.

    Args:
        value: A frozen value such as a provider or a spec, or anything that one may hold.

    >>> from skyward.model.spec.nodes import Nodes
    >>> stated(Nodes(desired=2)) == stated(Nodes(desired=2)), stated({"b": (1,), "a": None})
    (True, [('a', 'None'), ('b', ['1'])])
    """
    cls: Any = type(value)
    if attrs.has(cls):
        fields = [one.name for one in attrs.fields(cls) if one.eq]
        return (cls.__qualname__, [(name, stated(getattr(value, name))) for name in fields])
    if isinstance(value, Mapping):
        return sorted((str(name), stated(one)) for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return [stated(one) for one in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(stated(one)) for one in value)
    # What has no text of its own would be called by its address.
    if isinstance(value, (type, FunctionType)):
        return (value.__module__, value.__qualname__)
    if cls.__repr__ is not object.__repr__:
        return repr(value)
    return (cls.__qualname__, sorted((name, stated(one)) for name, one in getattr(value, "__dict__", {}).items()))


def digest_of(*values: object) -> str:
    """
    Return a digest of what values say of themselves, which gives no secret among them away.

    Args:
        values: Any.

    >>> digest_of(1, "a") == digest_of(1, "a"), digest_of(1) == digest_of("1"), len(digest_of())
    (True, False, 32)
    """
    said = repr([stated(value) for value in values])
    return hashlib.blake2b(said.encode(), digest_size=16, person=b"skyward-value").hexdigest()
