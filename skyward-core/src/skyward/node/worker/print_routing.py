"""
Prints go elsewhere for a while: those of Python's streams, and what is written to descriptors where its call is known.

A worker's streams look at routes by themselves; in any other process a stream that does stands before its own.
"""

from __future__ import annotations

import contextlib
import io
import sys
import threading

from skyward.node.worker.descriptor_routing import descriptors_follow, direct
from skyward.node.worker.routes import STDERR, STDOUT, current_route, followed, on_route, sink_of
from skyward.node.worker.standard_descriptors import DESCRIPTORS, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from _typeshed import ReadableBuffer

    from skyward.node.worker.routes import Sink

_NAMES = ("stdout", "stderr")

_installing = threading.Lock()

_kept: dict[int, RoutedStream] = {}
"""
The last stream that stood before each of the process's.

`print` of Python 3.11 holds no reference to the stream that it prints to: one that is freed while another thread prints
is a crash of the process.
"""


class RoutedStream:
    """
    Stand before a stream of a process that is no worker, with routes that bypass it.

    Args:
        stream: What stood there before, and has everything but what a route takes.
        index: `STDOUT` or `STDERR`.
    """

    follows_routes = True

    def __init__(self, stream: Any, index: int) -> None:
        self._stream = stream
        self._index = index
        self._fd = _fileno(stream)
        self.users = 0

    def write(self, text: str, /) -> int:
        """Write to where the route leads."""
        sink = sink_of(self._index)
        if sink is not None:
            return sink.write(text)
        fd = DESCRIPTORS.unrouted(self._fd)
        if fd == self._fd:
            written: int = self._stream.write(text)
            return written
        # The stream's descriptor leads elsewhere, for a route that this thread is not on.
        write_all(fd, text.encode(self._stream.encoding or "utf-8", "backslashreplace"))
        return len(text)

    def writelines(self, lines: Any, /) -> None:
        """Write each of the lines."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush where the route leads."""
        sink = sink_of(self._index)
        (self._stream if sink is None else sink).flush()

    def flush_own(self) -> None:
        """Flush the stream, wherever the route leads."""
        self._stream.flush()

    @property
    def buffer(self) -> Any:
        """Return what takes bytes for where the route leads."""
        sink = sink_of(self._index)
        return self._stream.buffer if sink is None else _BinarySide(sink)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _BinarySide(io.BufferedIOBase):
    """Pass bytes to a sink, as text."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of it."""
        content = memoryview(data).tobytes()
        self._sink.write(content.decode("utf-8", "backslashreplace"))
        return len(content)

    def flush(self) -> None:
        """Flush the sink."""
        self._sink.flush()

    def writable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Do nothing: the sink is the route's."""


@contextlib.contextmanager
def routed(stdout: Sink | None = None, stderr: Sink | None = None) -> Iterator[None]:
    """
    Send writes elsewhere for a while; a sink that is None leaves the stream as it is.

    Threads of the same call that have no route of their own follow, as do processes that it starts, and descriptors
    where nothing else writes to them.

    >>> from skyward.node.worker.routes import Silence
    >>> with routed(stdout=Silence()):
    ...     print("not to be seen")
    """
    if stdout is None and stderr is None:
        yield
        return
    out, err = current_route() or (None, None)
    route = (stdout or out, stderr or err)
    with (
        _streams_follow((stdout is not None, stderr is not None)),
        on_route(route),
        descriptors_follow(route),
        followed(route),
    ):
        direct()
        yield


@contextlib.contextmanager
def _streams_follow(wanted: tuple[bool, bool]) -> Iterator[None]:
    """Make sure that the process's streams look at routes; a worker's do by themselves."""
    held = [_hold(index) for index in (STDOUT, STDERR) if wanted[index]]
    try:
        yield
    finally:
        for stream in held:
            if stream is not None:
                _release(stream)


def _hold(index: int) -> RoutedStream | None:
    with _installing:
        stream = getattr(sys, _NAMES[index])
        if stream is None:
            return None
        if not getattr(stream, "follows_routes", False):
            kept = _kept.get(index)
            if kept is None or kept._stream is not stream:
                kept = _kept[index] = RoutedStream(stream, index)
            stream = kept
            setattr(sys, _NAMES[index], stream)
        if not isinstance(stream, RoutedStream):
            return None
        stream.users += 1
        return stream


def _release(stream: RoutedStream) -> None:
    with _installing:
        stream.users -= 1
        name = _NAMES[stream._index]
        if not stream.users and getattr(sys, name) is stream:
            setattr(sys, name, stream._stream)


def _fileno(stream: Any) -> int:
    try:
        fd = stream.fileno()
    except (OSError, ValueError, AttributeError):
        return -1
    return fd if isinstance(fd, int) else -1
