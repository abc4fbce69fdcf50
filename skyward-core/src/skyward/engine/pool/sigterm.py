"""SIGTERM as an exit that unwinds, so that pools are left and their nodes terminated."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType


class _Unwinding:
    """
    Handle SIGTERM as long as there is something to terminate.

    Pools that are open at the same time share the handler: the first puts it in, the last takes it out.
    A forked child has nothing of theirs to terminate, and ends by the signal as any other process: what started it,
    such as `multiprocessing.Pool.terminate`, waits for that without limit.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted = 0
        self._masks = threading.local()

    def hold(self) -> None:
        """Block the signal while this thread forks: one for the child would be lost with the handler."""
        self._masks.before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM} if self._wanted else ())

    def release(self) -> None:
        """Unblock it."""
        signal.pthread_sigmask(signal.SIG_SETMASK, self._masks.before)

    def forget(self) -> None:
        """Drop what there is to terminate, as a forked child."""
        self._lock = threading.Lock()
        self._wanted = 0
        self._put_back()
        self.release()

    def begin(self) -> bool:
        """Handle the signal from now on; False where this thread may not, or the program handles it itself."""
        if threading.current_thread() is not threading.main_thread():
            return False
        if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, self.leave):
            return False
        with self._lock:
            self._wanted += 1
        signal.signal(signal.SIGTERM, self.leave)
        return True

    def end(self) -> None:
        """Restore the default, if no other pool needs the handler."""
        with self._lock:
            self._wanted -= 1
            last = not self._wanted
        # Only the main thread may change handlers; elsewhere `leave` does it when the signal comes.
        if last and threading.current_thread() is threading.main_thread():
            self._put_back()

    def leave(self, number: int, frame: FrameType | None) -> None:
        """Exit by an exception, which lets `with` blocks end."""
        if self._wanted:
            raise SystemExit(128 + number)
        self._put_back()
        os.kill(os.getpid(), number)

    def _put_back(self) -> None:
        if signal.getsignal(signal.SIGTERM) == self.leave:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


_unwinding = _Unwinding()
os.register_at_fork(before=_unwinding.hold, after_in_parent=_unwinding.release, after_in_child=_unwinding.forget)


@contextlib.contextmanager
def terminated_as_exit() -> Iterator[None]:
    """Turn SIGTERM into an exit that unwinds, where the program does not handle it and this is the main thread."""
    if not _unwinding.begin():
        yield
        return
    process = os.getpid()
    try:
        yield
    finally:
        # A forked child that leaves the block too has nothing to terminate.
        if os.getpid() == process:
            _unwinding.end()
