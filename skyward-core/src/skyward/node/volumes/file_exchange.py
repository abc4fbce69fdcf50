"""Exchanging a file for what came from a bucket, unless a process of the node has written to it or may be about to."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from enum import Enum
from pathlib import Path

from skyward.node.volumes.changes import FileState

__all__ = ["Lease", "added", "exchanged", "is_idle"]


class Lease(Enum):
    """What the system says of who writes to a file."""

    HELD = "held"
    """No process has it open for writing, and one that opens it waits."""
    REFUSED = "refused"
    """A process has it open for writing."""
    UNKNOWN = "unknown"
    """This filesystem or system has no leases: what changed a file is seen by its size and time alone."""


def is_idle(path: str) -> bool:
    """
    Return whether no process has a file open for writing, as far as the system can say.

    Args:
        path: The file; one that is not there has none.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        return _leased(descriptor) is not Lease.REFUSED
    finally:
        os.close(descriptor)


def added(folder: str, name: str, arrived: Path) -> bool:
    """
    Add a file where there is none, and return whether it is there; what the node put there stays.

    Args:
        folder: The folder of the volume.
        name: The file's name in it.
        arrived: What came from the bucket, on the same filesystem; its name stays.

    Raises:
        OSError: If there can be no such file: something of its path is a file or a link.
    """
    path = os.path.join(folder, name)
    parent = os.path.dirname(path)
    os.makedirs(parent, exist_ok=True)
    if os.path.realpath(parent) != os.path.join(os.path.realpath(folder), os.path.dirname(name)).rstrip(os.sep):
        raise NotADirectoryError(errno.ENOTDIR, "a link leads to another folder", parent)
    try:
        os.link(arrived, path)
    except FileExistsError:
        return False
    return True


def exchanged(path: str, expected: FileState, aside: Path, arrived: Path | None) -> bool:
    """
    Exchange a file, or remove it, and return whether that was done; readers that have it open keep what they read.

    It is not done where the file is not as expected, or where a process has it open for writing: that one's file would
    have no name any more. The kernel holds up those that open it for writing meanwhile; for them, it is put back.

    Args:
        path: The file.
        expected: Its state when it was last copied.
        aside: A name on the same filesystem, for the file that is exchanged.
        arrived: What takes its place, on the same filesystem; None to remove it. Both names may be taken afterwards.

    Raises:
        OSError: If the file cannot be exchanged.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        lease = _leased(descriptor)
        if lease is Lease.REFUSED or FileState.of(os.fstat(descriptor)) != expected:
            return False
        swapped = arrived is not None and _swapped(arrived, path)
        taken = arrived if swapped and arrived is not None else aside
        if not swapped:
            os.rename(path, aside)
        if FileState.of(os.lstat(taken)) != expected or (lease is Lease.HELD and _claimed(descriptor)):
            # Another file took the name meanwhile, or a process waits to write to this one.
            with contextlib.suppress(FileExistsError):
                if not (swapped and _swapped(taken, path)):
                    os.link(taken, path)
            return False
        if not swapped and arrived is not None:
            with contextlib.suppress(FileExistsError):
                os.link(arrived, path)
        return True
    finally:
        os.close(descriptor)


def _swapped(one: Path, other: str) -> bool:
    """Exchange the names of two files at one moment, and return whether that was possible."""
    if sys.platform == "linux":
        import ctypes

        here, exchange = -100, 2
        with contextlib.suppress(AttributeError):
            done = ctypes.CDLL(None).renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange)
            return bool(done == 0)
    return False


def _leased(descriptor: int) -> Lease:
    """Take a lease of a file until it is closed."""
    found = Lease.UNKNOWN
    if sys.platform == "linux":
        import fcntl
        import signal

        try:
            # The signal says that the lease is wanted back: one that no process minds.
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            found = Lease.HELD
        except OSError as error:
            if error.errno == errno.EAGAIN:
                found = Lease.REFUSED
    return found


def _claimed(descriptor: int) -> bool:
    """Return whether a process waits for the lease of a file, to write to it."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            return fcntl.fcntl(descriptor, fcntl.F_GETLEASE) == fcntl.F_UNLCK
    return False
