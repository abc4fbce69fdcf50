"""Objects of the user's in words, for messages: their type, their text, and an error in one line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["brief", "said", "shortened", "type_name"]

_BRIEF = 500


def type_name(kind: type) -> str:
    """
    Name a class with its module, as a traceback does.

    Args:
        kind: The class, or what stands in the place of one.

    >>> type_name(KeyError), type_name(Callable)
    ('KeyError', 'collections.abc.Callable')
    """
    module = getattr(kind, "__module__", None)
    name = str(getattr(kind, "__qualname__", kind))
    return name if module in (None, "builtins") else f"{module}.{name}"


def said(obj: object, say: Callable[[Any], str]) -> str:
    """
    Return the text of an object, whatever its class does when it is asked.

    Args:
        obj: The object.
        say: `str` or `repr`.

    >>> said(KeyError("gone"), str)
    "'gone'"
    """
    try:
        return say(obj)
    except BaseException:
        return f"<{type_name(type(obj))} whose text cannot be had>"


def brief(error: BaseException) -> str:
    """
    Describe an error by its type and its text.

    Args:
        error: The error.

    >>> brief(KeyError("gone")), brief(OSError())
    ("KeyError: 'gone'", 'OSError')
    """
    text = said(error, str).rstrip(".")
    return shortened(f"{type_name(type(error))}: {text}".removesuffix(": "), _BRIEF)


def shortened(text: str, limit: int) -> str:
    """
    Cut the middle out of a text whose UTF-8 form is over the limit, in bytes.

    Args:
        text: The text.
        limit: Bytes.

    >>> shortened("x" * 1000, 100)
    'xxxxxxxxxxxx\\n[... 964 bytes left out ...]\\nxxxxxxxxxxxxxxxxxxxxxxxx'
    """
    data = text.encode("utf-8", "backslashreplace")
    if len(data) <= limit:
        return data.decode()
    room = limit - 64
    left_out = f"\n[... {len(data) - room} bytes left out ...]\n"
    head, tail = data[: room // 3], data[-(room - room // 3) :]
    return f"{head.decode('utf-8', 'ignore')}{left_out}{tail.decode('utf-8', 'ignore')}"
