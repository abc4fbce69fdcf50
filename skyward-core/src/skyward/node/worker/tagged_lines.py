"""
Lines that carry the call they belong to, through the pipe between a worker and its agent.

Python code in a worker prints to a `TaggedStream`; the agent reads the other end with a `TaggedReader`.
C code and subprocesses write to the same pipe as they please.

On the pipe a *tagged chunk* is

    \\x1e  <call id, 1 to 16 hexadecimal digits>  \\x1f or \\x1d  <text without newline>  \\n

where `\\x1f` says that the line ends with this chunk, and `\\x1d` that a later chunk of the same call goes on with it.
The mark stands before the text, so no text can be taken for it.
A chunk is written at once and is no longer than what a pipe takes at once, so nothing gets between its bytes.
Between chunks there may be other bytes, even in the middle of their lines: a chunk begins wherever a header stands,
and the line that it interrupts goes on after it.
Call 0 is none.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from weakref import ref

from skyward.node.task import task_context
from skyward.node.worker.routes import STDERR, STDOUT, sink_of
from skyward.node.worker.standard_descriptors import DESCRIPTORS, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import ReadableBuffer

CHUNK_BYTES = 4096 if sys.platform == "linux" else 512
"""What a pipe takes at once, so that the chunks of several processes do not mix."""

LINE_BYTES = 64 << 10
"""Where the reader cuts a line in two."""

OPEN_LINES = 1024
"""Calls whose unfinished lines the reader keeps; what comes on top ends the oldest."""

OPEN_BYTES = 4 << 20
"""Bytes of unfinished lines that the reader keeps in all."""

_HEADER_BYTES = 18
_BEGIN, _LAST, _MORE = 0x1E, 0x1F, 0x1D
_DIGITS = frozenset(b"0123456789abcdef")


class TaggedStream(io.TextIOWrapper):
    """
    Print to a pipe, each line under the call that printed it.

    Text is kept until its line is complete; `flush` in the same thread, and the end of the call, send what there is.
    Each thread has a line of its own, so the lines of two threads do not mix.

    Args:
        fd: The pipe's end to write; it is never closed.
        current_call: Names the call that the calling thread works for; 0 if none.
        index: Which of a route's sinks is for this stream, `STDOUT` or `STDERR`.

    >>> stream = TaggedStream(1, lambda: 0)
    >>> stream.encoding, stream.errors, stream.isatty()
    ('utf-8', 'backslashreplace', False)
    """

    follows_routes = True

    def __init__(self, fd: int, current_call: Callable[[], int], index: int = STDOUT) -> None:
        super().__init__(
            TaggedBuffer(fd, current_call, index),
            encoding="utf-8",
            errors="backslashreplace",
            newline="\n",
            write_through=True,
        )

    def close(self) -> None:
        """Send what is there, and stay open: the stream belongs to the worker, and not to a call."""
        self.flush()

    def __del__(self) -> None:
        """Keep the pipe open."""


class TaggedBuffer(io.BufferedIOBase):
    """
    Be the binary side of a `TaggedStream`.

    Args:
        fd: The pipe's end to write.
        current_call: Names the call that the calling thread works for; 0 if none.
        index: Which of a route's sinks is for this stream.
    """

    mode = "wb"

    def __init__(self, fd: int, current_call: Callable[[], int], index: int) -> None:
        self._fd = fd
        self._current_call = current_call
        self._index = index
        self.name = "<stderr>" if index == STDERR else "<stdout>"
        self._forget()
        _after_fork(ref(self))

    def _forget(self) -> None:
        # A child's copy of unfinished lines is its parent's to write, and another thread may have held the lock.
        self._lock = threading.RLock()
        self._unsent: dict[tuple[int, int], bytes] = {}
        self._unended: dict[int, int] = {}

    def write(self, data: ReadableBuffer, /) -> int:
        """Send the lines that are complete, and keep the rest."""
        content = memoryview(data).tobytes()
        sink = sink_of(self._index)
        if sink is not None:
            sink.write(content.decode("utf-8", "backslashreplace"))
            return len(content)
        call, thread = self._current_call(), threading.get_ident()
        with self._lock:
            *lines, rest = (self._unsent.pop((call, thread), b"") + content).split(b"\n")
            for line in lines:
                self._send(call, thread, line, last=True)
            if len(rest) >= _room(call):
                rest = self._send_full(call, thread, rest)
            if rest:
                self._unsent[call, thread] = rest
            if call and (rest or self._unended.get(call) == thread):
                self._watch(call)
        return len(content)

    def flush(self) -> None:
        """Send what there is of this thread's line; others are just about to go on with theirs."""
        sink = sink_of(self._index)
        if sink is not None:
            sink.flush()
            return
        thread = threading.get_ident()
        with self._lock:
            for key in [key for key in self._unsent if key[1] == thread]:
                self._send(*key, self._unsent.pop(key), last=False)

    def send_all(self) -> None:
        """Send what there is of everybody's lines."""
        with self._lock:
            for key in list(self._unsent):
                self._send(*key, self._unsent.pop(key), last=True)

    def end_call(self, call: int) -> None:
        """
        Finish a call's lines.

        Args:
            call: Its id.
        """
        with self._lock:
            for key in [key for key in self._unsent if key[0] == call]:
                self._send(*key, self._unsent.pop(key), last=True)
            if call in self._unended:
                self._send(call, self._unended[call], b"", last=True)

    def fileno(self) -> int:
        """Return the descriptor; what is written to it directly carries no call."""
        return self._fd

    def writable(self) -> bool:
        """Return True."""
        return True

    def isatty(self) -> bool:
        """Return False: a worker has no terminal."""
        return False

    def close(self) -> None:
        """Send what is there, and stay open."""
        self.flush()

    def __del__(self) -> None:
        """Keep the pipe open."""

    def _watch(self, call: int) -> None:
        context = task_context.owner()
        if context is not None and context.call_id == call:
            context.at_end.add(self.end_call)

    def _send(self, call: int, thread: int, line: bytes, *, last: bool) -> None:
        other = self._unended.get(call)
        if other is not None and other != thread:
            self._write(_chunk(call, b"", _LAST))
            del self._unended[call]
            other = None
        if not call and last and other is None and len(line) < CHUNK_BYTES and _BEGIN not in line:
            self._write(line + b"\n")
            return
        if len(line) > _room(call):
            line = self._send_full(call, thread, line)
        self._write(_chunk(call, line, _LAST if last else _MORE))
        if last:
            self._unended.pop(call, None)
        else:
            self._unended[call] = thread

    def _send_full(self, call: int, thread: int, line: bytes) -> bytes:
        """Send all chunks that the line fills, and return the rest."""
        room = _room(call)
        while len(line) >= room:
            piece, line = line[:room], line[room:]
            self._send(call, thread, piece, last=False)
        return line

    def _write(self, data: bytes) -> None:
        # Past a route that the process's own descriptor follows for code that knows nothing of calls.
        write_all(DESCRIPTORS.unrouted(self._fd), data)


class TaggedReader:
    r"""
    Put together the lines that a process wrote, from the bytes of its pipe.

    It takes any bytes, and never holds more than `OPEN_LINES` unfinished lines of `LINE_BYTES`, `OPEN_BYTES` in all.

    >>> reader = TaggedReader()
    >>> reader.feed(b"load\x1e7\x1fepoch 1\ning\nhalf a l")
    [(7, 'epoch 1'), (None, 'loading')]
    >>> reader.finish()
    [(None, 'half a l')]
    """

    __slots__ = ("_chunk", "_header", "_held", "_lines", "_said")

    def __init__(self) -> None:
        self._header = b""
        self._chunk: tuple[int, bool] | None = None
        self._lines: dict[int | None, bytearray] = {}
        self._held = 0
        self._said: list[tuple[int | None, str]] = []

    def feed(self, data: bytes) -> list[tuple[int | None, str]]:
        """
        Take bytes, and return the lines that they complete.

        Args:
            data: As they came; cut anywhere.

        Returns:
            For each line the call's id, or None if that is unknown, and the line without its newline.
        """
        data = self._header + data
        self._header = b""
        at = 0
        while at < len(data):
            at = self._inside(data, at) if self._chunk is not None else self._outside(data, at)
        said, self._said = self._said, []
        return said

    def finish(self) -> list[tuple[int | None, str]]:
        """Return what is there of lines that will not be completed."""
        if self._header:
            self._extend(None, self._header)
            self._header = b""
        for key in list(self._lines):
            self._end(key, even_empty=False)
        self._chunk = None
        said, self._said = self._said, []
        return said

    def _inside(self, data: bytes, at: int) -> int:
        """Read a chunk's text."""
        assert self._chunk is not None
        call, last = self._chunk
        end = data.find(b"\n", at)
        self._extend(call, data[at : end if end >= 0 else len(data)])
        if end < 0:
            return len(data)
        if last:
            self._end(call)
        self._chunk = None
        return end + 1

    def _outside(self, data: bytes, at: int) -> int:
        """Read untagged bytes up to their newline or up to a header."""
        end, begin = data.find(b"\n", at), data.find(b"\x1e", at)
        if end >= 0 and not 0 <= begin < end:
            self._extend(None, data[at:end])
            self._end(None)
            return end + 1
        if begin < 0:
            self._extend(None, data[at:])
            return len(data)
        self._extend(None, data[at:begin])
        mark = begin + 1
        while mark < len(data) and mark < begin + _HEADER_BYTES - 1 and data[mark] in _DIGITS:
            mark += 1
        if mark == len(data):
            self._header = data[begin:]
            return len(data)
        if mark > begin + 1 and data[mark] in {_LAST, _MORE}:
            self._chunk = (int(data[begin + 1 : mark], 16), data[mark] == _LAST)
            return mark + 1
        self._extend(None, data[begin:mark])
        return mark

    def _extend(self, call: int | None, text: bytes) -> None:
        line = self._lines.get(call)
        if line is None:
            if not text:
                return
            if len(self._lines) >= OPEN_LINES:
                self._end(next(iter(self._lines)), even_empty=False)
            line = self._lines[call] = bytearray()
        line += text
        self._held += len(text)
        while len(line) > LINE_BYTES:
            cut = LINE_BYTES
            # Characters stay whole, as far as this is UTF-8.
            while cut > LINE_BYTES - 3 and line[cut] & 0xC0 == 0x80:
                cut -= 1
            self._say(call, line[:cut])
            del line[:cut]
            self._held -= cut
        while self._held > OPEN_BYTES:
            self._end(next(iter(self._lines)), even_empty=False)

    def _end(self, call: int | None, *, even_empty: bool = True) -> None:
        line = self._lines.pop(call, b"")
        self._held -= len(line)
        if line or even_empty:
            self._say(call, line)

    def _say(self, call: int | None, line: bytes | bytearray) -> None:
        self._said.append((call or None, line.decode("utf-8", "backslashreplace")))


def send_all(stream: object) -> None:
    """
    Write out all that a stream holds back, whichever call wrote it, because the process is about to end.

    Args:
        stream: Anything that user code may have put in place of `sys.stdout`.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        stream.flush()  # type: ignore[attr-defined]  # what has none is passed over
    if isinstance(stream, TaggedStream):
        with contextlib.suppress(OSError):
            stream.buffer.send_all()  # type: ignore[attr-defined]  # a TaggedBuffer


def _after_fork(buffer: ref[TaggedBuffer]) -> None:
    def forget() -> None:
        alive = buffer()
        if alive is not None:
            alive._forget()

    os.register_at_fork(after_in_child=forget)


def _chunk(call: int, text: bytes, mark: int) -> bytes:
    return b"\x1e%x%c%b\n" % (call, mark, text)


def _room(call: int) -> int:
    """Count the bytes of text that fit into a chunk of a call."""
    return CHUNK_BYTES - len(f"{call:x}") - 3
