"""The functions that a worker was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skyward.link.messages import FUNCTION, FUNCTION_DIGEST, FunctionFlag
from skyward.link.payload import Payload, decode, load


class FunctionStore:
    """
    Keep the functions that were sent, and unpickle them.

    A function that captures only what cannot change is unpickled once; any other one for each call, because a
    call sees its globals and closure as they were at dispatch.
    """

    def __init__(self) -> None:
        self._payloads: dict[bytes, tuple[int, Payload]] = {}
        self._shared: dict[bytes, Callable[..., Any]] = {}

    def add(self, body: bytes, fds: tuple[int, ...]) -> None:
        """Take a FUNCTION frame's body."""
        digest, flags = FUNCTION.unpack_from(body)
        self._payloads[digest] = (flags, decode(body, FUNCTION.size, fds))

    def drop(self, digest: bytes) -> None:
        """Drop a function."""
        self._payloads.pop(digest[:FUNCTION_DIGEST], None)
        self._shared.pop(digest[:FUNCTION_DIGEST], None)

    def get(self, digest: bytes, plugins: tuple[Any, ...]) -> Callable[..., Any]:
        """
        Return the function, wrapped by the plugins.

        Raises:
            Exception: Whatever unpickling it raises.
        """
        function = self._shared.get(digest)
        if function is not None:
            return function
        flags, payload = self._payloads[digest]
        function = load(payload)
        function = getattr(function, "local", function)
        if plugins:
            from skyward.plugin import decorated

            function = decorated(plugins, function)
        if flags & FunctionFlag.SHAREABLE:
            self._shared[digest] = function
        return function
