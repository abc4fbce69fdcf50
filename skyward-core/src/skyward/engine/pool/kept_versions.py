"""
What a client keeps for the tasks of its pool: answers to their requests, from folders of its own.

    checkpoints/pools/ID-…/ADDRESS/     what calls saved; removed with the pool
    checkpoints/named/pool-NAME/ADDRESS/   what has a key; stays

What a node sends is written and read, and never opened: the pickles in it are for nodes of the same pool, or of one of
the same name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from skyward import private
from skyward.errors import SkywardError
from skyward.link.keeping import ADDRESS, PIECE
from skyward.node.data.checkpoint_folder import ABANDONED, CheckpointFolder, UnfinishedVersion

__all__ = ["RESERVE", "KeptVersions"]

RESERVE: Final = 256 << 20
"""Bytes of the disk that are left free for the rest of the machine."""

MOST_UPLOADS: Final = 512
"""Versions that may be on their way at once, each with a file that is open."""

_LARGEST: Final = 1 << 50
_MOST_KEPT: Final = 1 << 20
_LOCK: Final = ".lock"


class _Arriving(NamedTuple):
    """A version that is on its way."""

    owner: object
    folder: CheckpointFolder
    address: str
    part: UnfinishedVersion
    written: list[float]


class KeptVersions:
    """
    Answer requests, one after the other; all of it blocks.

    Args:
        root: The folder around all that clients of this user keep.
        pool: The pool's id.
        name: The pool's name.
    """

    def __init__(self, root: Path, pool: str, name: str) -> None:
        self._root = root
        self._pool = pool
        self._name = name
        self._own: tuple[CheckpointFolder, int] | None = None
        self._uploads: dict[str, _Arriving] = {}

    def answer(self, owner: object, said: dict[str, Any], data: memoryview | bytearray) -> tuple[dict[str, Any], bytes]:
        """
        Do what a worker asks for; what fails is in the answer.

        Args:
            owner: The worker's node.
            said: The request, as `link/keeping.py` says.
            data: The bytes that came with it.
        """
        try:
            return self._answer(owner, said, data)
        except OSError as error:
            return {"error": error.strerror or str(error), "errno": error.errno}, b""
        except SkywardError as error:
            return {"error": str(error)}, b""
        except (LookupError, TypeError, ValueError) as error:
            return {"error": f"the client does not understand the request: {type(error).__name__}: {error}"}, b""

    def lost(self, owner: object) -> None:
        """Forget what a node that is gone was sending."""
        for name in [name for name, upload in self._uploads.items() if upload.owner is owner]:
            self._drop(name)

    def close(self) -> None:
        """Remove what only this pool needed."""
        for name in list(self._uploads):
            self._drop(name)
        own, self._own = self._own, None
        if own is not None:
            private.remove(own[0].root)
            os.close(own[1])

    def _answer(
        self, owner: object, said: dict[str, Any], data: memoryview | bytearray
    ) -> tuple[dict[str, Any], bytes]:
        match said["do"]:
            case "list":
                return {"versions": self._folder(said).versions(_address(said))}, b""
            case "write":
                self._write(owner, said, memoryview(data))
            case "publish":
                return {"version": self._publish(said)}, b""
            case "drop":
                self._drop(str(said["upload"]))
            case "read":
                return self._read(said)
            case "delete":
                self._folder(said).delete(_address(said))
            case other:
                raise ValueError(f"{other!r} is nothing to do")
        return {}, b""

    def _write(self, owner: object, said: dict[str, Any], data: memoryview) -> None:
        name, at = str(said["upload"]), _number(said["at"], _LARGEST)
        upload = self._uploads.get(name)
        if upload is None:
            self._make_room()
            folder, address = self._folder(said), _address(said)
            upload = self._uploads[name] = _Arriving(owner, folder, address, folder.begin(address), [0.0])
        upload.written[0] = time.monotonic()
        disk = os.fstatvfs(upload.part.fd)
        if disk.f_bavail * disk.f_frsize < RESERVE + len(data):
            raise OSError(errno.ENOSPC, f"{os.strerror(errno.ENOSPC)}: {RESERVE >> 20} MiB stay free")
        while len(data):
            written = os.pwrite(upload.part.fd, data, at)
            at += written
            data = data[written:]

    def _publish(self, said: dict[str, Any]) -> int:
        name = str(said["upload"])
        upload = self._uploads[name]
        try:
            size = os.fstat(upload.part.fd).st_size
            if size != said["size"]:
                raise OSError(errno.EIO, f"{size} bytes of {said['size']} have arrived")
            keep = max(1, _number(said["keep"], _MOST_KEPT))
            return upload.folder.publish(upload.address, upload.part, keep)
        finally:
            self._drop(name)

    def _read(self, said: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        path = self._folder(said).path(_address(said), _number(said["version"], 10**18))
        with open(path, "rb", buffering=0) as file:
            data = os.pread(file.fileno(), PIECE, _number(said["at"], _LARGEST))
            return {"size": os.fstat(file.fileno()).st_size}, data

    def _drop(self, name: str) -> None:
        upload = self._uploads.pop(name, None)
        if upload is not None:
            upload.part.close()

    def _make_room(self) -> None:
        if len(self._uploads) < MOST_UPLOADS:
            return
        since = time.monotonic() - ABANDONED
        for name in [name for name, upload in self._uploads.items() if upload.written[0] < since]:
            self._drop(name)
        if len(self._uploads) >= MOST_UPLOADS:
            raise OSError(errno.EMFILE, f"{MOST_UPLOADS} checkpoints are being saved here at once")

    def _folder(self, said: dict[str, Any]) -> CheckpointFolder:
        if said["named"] is True:
            return CheckpointFolder(private.directory(named(self._root, self._name)))
        if self._own is None:
            self._own = _pool_folder(private.directory(self._root / "pools"), self._pool)
        return self._own[0]


def named(root: Path, name: str) -> Path:
    """
    Return the folder of what has a key.

    Args:
        root: The folder around all that clients keep.
        name: The name of the pool whose tasks may read and write there.

    >>> named(Path("/state"), "train/2")
    PosixPath('/state/named/pool-train%2F2')
    """
    return root / "named" / f"pool-{quote(name, safe='')[:200]}"


def _pool_folder(around: Path, pool: str) -> tuple[CheckpointFolder, int]:
    """Make a folder that is locked as long as its pool is open, and remove those of pools that are gone."""
    with _locked(around / _LOCK):
        for path in around.iterdir():
            if path.is_dir():
                with contextlib.suppress(OSError), _locked(path / _LOCK, wait=False):
                    private.remove(path)
        path = Path(tempfile.mkdtemp(prefix=f"{pool}-", dir=around))
        lock = private.opened(path / _LOCK, os.O_RDWR | os.O_CREAT)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return CheckpointFolder(path), lock


@contextlib.contextmanager
def _locked(path: Path, *, wait: bool = True) -> Iterator[None]:
    lock = private.opened(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(lock)


def _address(said: dict[str, Any]) -> str:
    if not isinstance(said["address"], str) or not ADDRESS.fullmatch(said["address"]):
        raise ValueError(f"{said['address']!r:.100} is no address")
    return str(said["address"])


def _number(said: object, most: int) -> int:
    if type(said) is not int or not 0 <= said <= most:
        raise ValueError(f"{said!r:.100} is no number from 0 to {most}")
    return said
