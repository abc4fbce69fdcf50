"""Lines that C code and processes write to the descriptors of a redirection, handed on as they come."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context

from skyward.node.agent.entry import INTERRUPT_SIGNAL
from skyward.node.task import task_context
from skyward.node.worker.routes import READER
from skyward.node.worker.standard_descriptors import DESCRIPTORS, moved_up, write_all
from skyward.node.worker.tagged_lines import TaggedReader

ORDER_PATIENCE = 0.2
"""Seconds that a print waits at most for lines before it that another thread is just handing on."""

END_PATIENCE = 1.0
"""Seconds to wait for the reading thread at the end, where no process has the pipes any more."""

_INTERRUPTS = (INTERRUPT_SIGNAL, signal.SIGINT)
"""What interrupts the main thread, in a worker and in a program."""

_CAPACITY = 64 << 10
"""Bytes that a pipe holds: after reading as many, all that was in it at first is read."""


class _Pipe:
    """Be one pipe, from which several threads read in turns."""

    def __init__(self, fd: int, deliver: Callable[[list[str]], None]) -> None:
        self.ended = False
        self._fd = fd
        self._deliver = deliver
        self._lines = TaggedReader()
        self.reading, self.writing = map(moved_up, os.pipe())
        os.set_blocking(self.reading, False)

    def read(self, *, over: bool) -> None:
        """Deliver what is there now; when the redirection is over, it goes to where it would go without."""
        left = _CAPACITY
        while left > 0 and not self.ended:
            try:
                data = os.read(self.reading, _CAPACITY)
            except BlockingIOError:
                return
            left -= len(data)
            self.ended = not data
            if over:
                _write(DESCRIPTORS.unrouted(self._fd), data)
            elif lines := self._lines.feed(data):
                self._deliver([text for _, text in lines])

    def finish(self) -> None:
        """Deliver what there is of a line."""
        if lines := self._lines.finish():
            self._deliver([text for _, text in lines])

    def close_reading(self) -> None:
        """Close the end to read."""
        if self.reading >= 0:
            with _uninterrupted():
                fd, self.reading, self.ended = self.reading, -1, True
                os.close(fd)

    def close_writing(self) -> None:
        """Close the end to write; processes that were started may still have theirs."""
        if self.writing >= 0:
            with _uninterrupted():
                fd, self.writing = self.writing, -1
                os.close(fd)


class DescriptorLines:
    """
    Hand on what is written to a redirection's two descriptors, line by line.

    A thread reads them, so that nothing that writes has to wait; a thread that prints reads what is there first, so
    that its lines stay in order.

    Args:
        deliver: What takes the lines of stdout, and of stderr.

    >>> lines = []
    >>> captured = DescriptorLines((lines.extend, lines.extend))
    >>> os.write(captured.descriptor(1), b"one\\ntwo")
    7
    >>> captured.end()
    >>> lines
    ['one', 'two']
    """

    def __init__(self, deliver: Sequence[Callable[[list[str]], None]]) -> None:
        self._deliver = deliver
        self._reading = threading.RLock()
        self._pipes: list[_Pipe] = []
        self._thread: threading.Thread | None = None
        self._over = False
        self._following = False
        self._error: Exception | None = None
        self._process = os.getpid()

    @property
    def of_parent(self) -> bool:
        """Return whether this process was forked off the one that reads the lines."""
        return os.getpid() != self._process

    def descriptor(self, fd: int) -> int | None:
        """
        Return the descriptor to write to, opened when first asked for; None when the redirection is over.

        Args:
            fd: 1 for what goes to stdout, 2 for stderr.
        """
        # A process that was forked off takes no lock, because it may have been held by a thread that it has not.
        if not self._pipes and not self._over and not self.of_parent and self._open():
            self._start()
        return next((pipe.writing for pipe in self._pipes[fd - 1 : fd] if pipe.writing >= 0), None)

    def write(self, fd: int, text: str) -> None:
        """Write text to where `descriptor` leads, for its reader to hand on: in a process that was forked off."""
        target = self.descriptor(fd)
        _write(fd if target is None else target, text.encode("utf-8", "backslashreplace"))

    def catch_up(self) -> None:
        """Deliver what was written before, so that it comes before what the caller delivers next."""
        if self._pipes and not self._over and self._reading.acquire(timeout=ORDER_PATIENCE):
            try:
                self._read()
            finally:
                self._reading.release()

    def end(self) -> None:
        """
        Deliver the rest; what processes write that go on is shown.

        Raises:
            Exception: What the callback raised in the thread that reads.
        """
        if self.of_parent:
            return
        with self._reading:
            try:
                for pipe in self._pipes:
                    pipe.close_writing()
                self._read()
                for pipe in self._pipes:
                    pipe.finish()
            finally:
                self._over = True
                self._close_unread()
        if self._thread is not None and all(pipe.ended for pipe in self._pipes):
            self._thread.join(END_PATIENCE)
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _open(self) -> bool:
        """Open the pipes; return whether that was still to do."""
        with self._reading:
            if self._pipes:
                return False
            with _uninterrupted():
                self._pipes = [_Pipe(fd, deliver) for fd, deliver in enumerate(self._deliver, 1)]
            return True

    def _start(self) -> None:
        """Start reading; not under the lock, because what Python does in a new thread may print."""
        call = task_context.owner()
        if call is not None:
            # Where an interrupt cuts the redirection's own end off.
            call.at_end.add(self._end_with)
        # What the callback asks about its call is answered as where the redirection began.
        run = copy_context().run
        thread = threading.Thread(target=run, args=(self._follow,), name=READER, daemon=True)
        thread.start()
        # An interrupt may come before the thread is: then there is none to wait for.
        self._thread = thread

    def _end_with(self, call: int) -> None:
        with self._reading:
            self._over = True
            for pipe in self._pipes:
                pipe.close_writing()
            self._close_unread()

    def _close_unread(self) -> None:
        """Close the ends to read of pipes whose thread an interrupt kept from starting."""
        if self._thread is None and not self._following:
            for pipe in self._pipes:
                pipe.close_reading()

    def _read(self) -> None:
        for pipe in self._pipes:
            pipe.read(over=self._over)

    def _follow(self) -> None:
        """Read until nothing has the other ends any more."""
        with self._reading:
            # A thread may be there after all that an interrupt has cut off from the redirection.
            self._following = True
            poll, pipes = select.poll(), {pipe.reading: pipe for pipe in self._pipes if pipe.reading >= 0}
        for fd in pipes:
            poll.register(fd, select.POLLIN)
        while pipes:
            for fd, _ in poll.poll():
                with self._reading:
                    try:
                        pipes[fd].read(over=self._over)
                    except Exception as error:
                        # Reading goes on, because what writes would have to wait; the redirection's end raises it.
                        self._error = self._error or error
                if pipes[fd].ended:
                    poll.unregister(fd)
                    os.close(fd)
                    del pipes[fd]


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold interrupts back until a block ends: in it, one would lose a descriptor that was just opened."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _write(fd: int, data: bytes) -> None:
    # A process whose streams are closed prints nowhere.
    with contextlib.suppress(OSError):
        write_all(fd, data)
