"""Turn functions into what travels; runs in the thread that dispatches."""

from __future__ import annotations

import contextlib
import os
import weakref
from types import FunctionType
from typing import Any

from skyward.engine.calls.buffers import Buffers
from skyward.engine.calls.call import CapturedFunction
from skyward.errors import RefError
from skyward.link.blame import blame
from skyward.link.capture import Snapshot, snapshot
from skyward.link.digest import Bytes, digest_of
from skyward.link.messages import FUNCTION, FUNCTION_DIGEST, FunctionFlag
from skyward.link.payload import Payload, views
from skyward.link.payload_making import packed, pickled
from skyward.link.written import WORTH_IT


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
        Return a function as it travels.

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
            made = pickled((function,), refs=self._buffers.refs)
            payload = packed(made, self._buffers.keep)
        except RefError:
            raise
        except Exception as error:
            raise blame(error, function=name, arguments={}, target=plain) from error
        self._buffers.sent(made.buffers, payload)
        captured = _captured(name, payload, shareable=taken is not None and taken.shareable, far=self._buffers.far)
        captured.needs = getattr(function, "needs", "")
        if taken is not None:
            with contextlib.suppress(TypeError):
                self._known[function] = (taken, captured)
        return captured


def _captured(name: str, payload: Payload, *, shareable: bool, far: bool) -> CapturedFunction:
    table = payload.encode()
    content: list[Bytes] = [table]
    if payload.segment is not None:
        # To a process here it is handed over again sooner than it is hashed.
        hashed = far or payload.segment.size < WORTH_IT
        content += views(payload) if hashed else [os.urandom(FUNCTION_DIGEST)]
    digest = digest_of(*content, b"shareable" if shareable else b"")[:FUNCTION_DIGEST]
    flags = (FunctionFlag.SHAREABLE if shareable else 0) | (FunctionFlag.STORED if payload.stored else 0)
    return CapturedFunction(name, digest, FUNCTION.pack(digest, flags) + table, payload)
