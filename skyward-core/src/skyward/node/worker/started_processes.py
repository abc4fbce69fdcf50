"""
Processes that a call starts, writing to where the call prints.

Those that Python forks take over descriptors by themselves, see `print_routing`.
While a route is entered, `subprocess` and what is built on it give a process the descriptors of the thread that
starts it, and `multiprocessing` hands them to one that is spawned or comes from its fork server.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any

from skyward.node.worker.standard_descriptors import DESCRIPTORS

_STDOUT, _STDERR = 1, 2
_HANDED = "_skyward_descriptors"


class HandedDescriptors:
    """
    Carry descriptors to a process of `multiprocessing`, which makes them its stdout and stderr as it unpickles this.

    Args:
        fds: The one for stdout and the one for stderr; None to leave a stream as it is.
    """

    def __init__(self, fds: tuple[int | None, int | None]) -> None:
        self._fds = fds

    def __reduce__(self) -> tuple[Callable[..., None], tuple[Any, ...]]:
        from multiprocessing.reduction import DupFd

        # One for both, where it is the same descriptor: it is handed over once.
        handed = {fd: DupFd(fd) for fd in set(self._fds) if fd is not None}
        return _take_over, tuple(None if fd is None else handed[fd] for fd in self._fds)


def _take_over(*handed: Any) -> None:
    for fd, descriptor in zip((_STDOUT, _STDERR), handed, strict=True):
        if descriptor is not None:
            os.dup2(descriptor.detach(), fd)


class StartedProcesses:
    """
    Have processes follow their thread's route, while they are to.

    Args:
        target: Returns where a process of the calling thread is to write that has our stdout (1) or stderr (2); None
            if it is that.
    """

    def __init__(self, target: Callable[[int], int | None]) -> None:
        self._target = target
        self._replaced: tuple[_Replaced, ...] = ()

    def follow(self) -> None:
        """Begin, unless it has begun."""
        if not self._replaced:
            import subprocess
            from multiprocessing.process import BaseProcess

            self._replaced = (
                _Replaced(subprocess.Popen, "__init__", self._popen),
                _Replaced(BaseProcess, "start", self._start),
            )
        for each in self._replaced:
            each.put_in()

    def unfollow(self) -> None:
        """End, unless it has ended."""
        for each in self._replaced:
            each.take_out()

    def _popen(self, original: Callable[..., None]) -> Callable[..., None]:
        def start(
            process: object,
            args: Any,
            bufsize: int = -1,
            executable: Any = None,
            stdin: Any = None,
            stdout: Any = None,
            stderr: Any = None,
            *others: Any,
            **keywords: Any,
        ) -> None:
            out, err = self._routed(stdout, _STDOUT), self._routed(stderr, _STDERR)
            original(process, args, bufsize, executable, stdin, out, err, *others, **keywords)

        return start

    def _routed(self, given: Any, inherited: int) -> Any:
        """Return what a process gets for a stream: the route's descriptor in place of our own stdout and stderr."""
        fd = inherited if given is None else _fileno(given)
        target = self._target(fd) if fd in (_STDOUT, _STDERR) else None
        return given if target is None else target

    def _start(self, original: Callable[..., None]) -> Callable[..., None]:
        def start(process: Any) -> None:
            fds = self._target(_STDOUT), self._target(_STDERR)
            if fds == (None, None):
                original(process)
                return
            _start_server(process)
            setattr(process, _HANDED, HandedDescriptors(fds))
            try:
                original(process)
            finally:
                with contextlib.suppress(AttributeError):
                    delattr(process, _HANDED)

        return start


class _Replaced:
    """Replace a method of a class for a while."""

    def __init__(self, owner: type, name: str, wrapper: Callable[[Any], Any]) -> None:
        self._owner, self._name, self._wrapper = owner, name, wrapper
        self._original: Any = None
        self._ours: Any = None
        self._is_in = False

    def put_in(self) -> None:
        """Insert ours in its place, unless it is there."""
        if self._is_in:
            return
        found = getattr(self._owner, self._name)
        if found is not self._original:
            self._original, self._ours = found, functools.wraps(found)(self._wrapper(found))
        setattr(self._owner, self._name, self._ours)
        self._is_in = True

    def take_out(self) -> None:
        """Restore the original, unless another library has wrapped ours and keeps it."""
        if self._is_in and getattr(self._owner, self._name) is self._ours:
            setattr(self._owner, self._name, self._original)
            self._is_in = False


def _fileno(given: Any) -> int:
    if isinstance(given, int):
        return given
    try:
        fd = given.fileno()
    except (OSError, ValueError, AttributeError):
        return -1
    return fd if isinstance(fd, int) else -1


def _start_server(process: Any) -> None:
    """Start the fork server that a process comes from, if it does, with the descriptors that it is to keep."""
    from multiprocessing import get_start_method

    if (getattr(process, "_start_method", None) or get_start_method()) == "forkserver":
        from multiprocessing.forkserver import ensure_running

        with DESCRIPTORS.as_before():
            ensure_running()
