"""Turn functions into what travels; runs in the thread that dispatches."""

from __future__ import annotations

import contextlib
import weakref
from types import FunctionType
from typing import Any

from skyward.engine.buffers import Buffers
from skyward.engine.call import CapturedFunction
from skyward.errors import RefError
from skyward.link.blame import blame
from skyward.link.capture import Snapshot, snapshot
from skyward.link.digest import digest_of
from skyward.link.messages import FUNCTION, FUNCTION_DIGEST, FunctionFlag
from skyward.link.payload import Payload, dump, views


class Captures:
    """
    Pickle functions, and not again while what they capture is the same.

    Args:
        buffers: Where large buffers that functions capture are kept.
    """

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._known: weakref.WeakKeyDictionary[Any, tuple[Snapshot, CapturedFunction]] = weakref.WeakKeyDictionary()

    def capture(self, function: Any, name: str) -> CapturedFunction:
        """
        Give a function as it travels.

        Args:
            function: A plain function, or a `Function` that knows its own.
            name: What the user calls it.

        Raises:
            SerializationError: If it captures something that cannot be pickled; the message names it.
        """
        known = self._known.get(function)
        if known is not None and known[0].still_true():
            return known[1]
        plain = getattr(function, "local", function)
        taken = snapshot(plain) if isinstance(plain, FunctionType) else None
        try:
            payload = dump(function, self._buffers.keep, refs=self._buffers.refs)
        except RefError:
            raise
        except Exception as error:
            raise blame(error, function=name, arguments={}, target=plain) from error
        captured = _captured(name, payload, shareable=taken is not None and taken.shareable)
        captured.needs = getattr(function, "needs", "")
        if taken is not None:
            with contextlib.suppress(TypeError):
                self._known[function] = (taken, captured)
        return captured


def _captured(name: str, payload: Payload, *, shareable: bool) -> CapturedFunction:
    table = payload.encode()
    content = [table] if payload.segment is None else [table, *views(payload)]
    digest = digest_of(*content, b"shareable" if shareable else b"")[:FUNCTION_DIGEST]
    flags = (FunctionFlag.SHAREABLE if shareable else 0) | (FunctionFlag.STORED if payload.stored else 0)
    return CapturedFunction(name, digest, FUNCTION.pack(digest, flags) + table, payload)
