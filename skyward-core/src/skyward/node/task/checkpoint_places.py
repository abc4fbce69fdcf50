"""Where checkpoints are kept: a folder, storage that takes files, or the client."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, runtime_checkable

from skyward.link.keeping import PIECE
from skyward.node.data.checkpoint_file import Pieces
from skyward.node.data.checkpoint_folder import CheckpointFolder, write_pieces

if TYPE_CHECKING:
    from skyward.node.worker.client_files import Keeping, PendingAnswer

__all__ = ["CheckpointStorage", "InClient", "InFolder", "InStorage", "CheckpointPlace", "VersionName", "Writes"]

Writes = Callable[[Callable[[Pieces], None]], object]
"""Writes a version to what takes its bytes."""

_KEY: Final = re.compile(r"(\d{8,18})-[0-9a-f]{8}\.checkpoint")
_DROPPED_WITHIN: Final = 1.0
_AHEAD: Final = 3


@runtime_checkable
class CheckpointStorage(Protocol):
    """
    What storage has to do to keep checkpoints: files under keys, each there as a whole or not at all.

    Keys have slashes in them, and no storage has two of one name.
    """

    def upload(self, path: str, key: str, /) -> object:
        """Store a file under a key; durable when this returns."""

    def download(self, key: str, path: str, /) -> object:
        """Fetch what is under a key into a file."""

    def ls(self, prefix: str, /) -> Iterable[str]:
        """List the keys that begin with a text."""

    def rm(self, key: str, /) -> object:
        """Remove what is under a key; harmless if nothing is."""


class VersionName(NamedTuple):
    """A version that is kept: its number, and its name at its place."""

    number: int
    name: str = ""


class CheckpointPlace(Protocol):
    """What keeps versions; each method raises the OSError of what fails."""

    def versions(self, address: str) -> list[VersionName]:
        """List what is kept, oldest first."""

    def save(self, address: str, writes: Writes, keep: int) -> int:
        """Keep a version and so many in all; return its number once it is durable."""

    def opened(self, address: str, version: VersionName) -> contextlib.AbstractContextManager[FileIO]:
        """Open a version for reading."""

    def delete(self, address: str) -> None:
        """Remove all versions."""


class InFolder:
    """
    Keep versions in a folder.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = CheckpointFolder(folder)

    def __str__(self) -> str:
        return str(self._folder.root)

    def versions(self, address: str) -> list[VersionName]:
        """List what is kept, oldest first."""
        return [VersionName(number) for number in self._folder.versions(address)]

    def save(self, address: str, writes: Writes, keep: int) -> int:
        """Keep a version, which is written to its place from where the object is."""
        with self._folder.writing(address) as part:
            writes(part.write)
            return self._folder.publish(address, part, keep)

    def opened(self, address: str, version: VersionName) -> FileIO:
        """Open a version for reading."""
        return FileIO(self._folder.path(address, version.number))

    def delete(self, address: str) -> None:
        """Remove all versions."""
        self._folder.delete(address)


class InStorage:
    """
    Keep versions in storage, by way of a file in the folder for temporary ones.

    Args:
        storage: The storage.
    """

    def __init__(self, storage: CheckpointStorage) -> None:
        self._storage = storage

    def __str__(self) -> str:
        return repr(self._storage)

    def versions(self, address: str) -> list[VersionName]:
        """List what is kept, oldest first."""
        found = []
        for key in self._storage.ls(f"{address}/"):
            name = str(key).rpartition("/")[2]
            if match := _KEY.fullmatch(name):
                found.append(VersionName(int(match[1]), name))
        return sorted(found)

    def save(self, address: str, writes: Writes, keep: int) -> int:
        """Keep a version under a key of its own: of two that are saved at one moment none replaces the other."""
        before = self.versions(address)
        number = before[-1].number + 1 if before else 1
        with tempfile.TemporaryDirectory(prefix="skyward-") as folder:
            path = Path(folder) / "version"
            with open(path, "xb", buffering=0) as file:
                writes(lambda pieces: write_pieces(file.fileno(), pieces))
            self._storage.upload(str(path), f"{address}/{number:08}-{secrets.token_hex(4)}.checkpoint")
        kept = self.versions(address)
        for version in kept[: max(0, len(kept) - keep)]:
            # What cannot be removed is in nothing's way.
            with contextlib.suppress(Exception):
                self._storage.rm(f"{address}/{version.name}")
        return number

    @contextlib.contextmanager
    def opened(self, address: str, version: VersionName) -> Iterator[FileIO]:
        """Open a version for reading."""
        with tempfile.TemporaryDirectory(prefix="skyward-") as folder:
            path = Path(folder) / "version"
            self._storage.download(f"{address}/{version.name}", str(path))
            with FileIO(path) as file:
                yield file

    def delete(self, address: str) -> None:
        """Remove all versions."""
        for version in self.versions(address):
            self._storage.rm(f"{address}/{version.name}")


class InClient:
    """
    Keep versions on the client's disk.

    Args:
        keeping: What asks the client.
        named: Whether they outlive the pool.
    """

    def __init__(self, keeping: Keeping, *, named: bool) -> None:
        self._keeping = keeping
        self._named = named

    def __str__(self) -> str:
        return "the client"

    def versions(self, address: str) -> list[VersionName]:
        """List what is kept, oldest first."""
        answer = self._keeping.ask({"do": "list", **self._of(address)}).result()
        return [VersionName(int(number)) for number in answer.head["versions"]]

    def save(self, address: str, writes: Writes, keep: int) -> int:
        """Keep a version, which is sent piece by piece; no file is made here."""
        upload = _PiecewiseUpload(self._keeping, self._of(address))
        try:
            writes(upload.write)
            return upload.publish(keep)
        except BaseException:
            upload.drop()
            raise

    @contextlib.contextmanager
    def opened(self, address: str, version: VersionName) -> Iterator[FileIO]:
        """Open a version for reading, once it is in a temporary file here."""
        asked: deque[tuple[int, PendingAnswer]] = deque()
        what = {"do": "read", "version": version.number, **self._of(address)}
        with tempfile.TemporaryFile(prefix="skyward-", buffering=0) as file:
            first = self._keeping.ask({**what, "at": 0}).result()
            size, at = int(first.head["size"]), len(first.data)
            _write_at(file.fileno(), memoryview(first.data), 0)
            while at < size or asked:
                if at < size and len(asked) < _AHEAD:
                    asked.append((at, self._keeping.ask({**what, "at": at})))
                    at += PIECE
                    continue
                place, request = asked.popleft()
                _write_at(file.fileno(), memoryview(request.result().data), place)
            yield file

    def delete(self, address: str) -> None:
        """Remove all versions."""
        self._keeping.ask({"do": "delete", **self._of(address)}).result()

    def _of(self, address: str) -> dict[str, Any]:
        return {"address": address, "named": self._named}


class _PiecewiseUpload:
    """Send a version in pieces; the first one that fails ends it."""

    def __init__(self, keeping: Keeping, of: dict[str, Any]) -> None:
        self._keeping = keeping
        self._of = of
        self._name = secrets.token_hex(16)
        self._piece = bytearray()
        self._at = 0
        self._asked: deque[PendingAnswer] = deque()

    def write(self, pieces: Pieces) -> None:
        """Take the next bytes."""
        for piece in pieces:
            rest = piece
            while len(rest):
                part = rest[: PIECE - len(self._piece)]
                self._piece += part
                rest = rest[len(part) :]
                if len(self._piece) == PIECE:
                    self._flush()

    def publish(self, keep: int) -> int:
        """Make what was written a version, and return its number."""
        self._flush()
        while self._asked:
            self._asked.popleft().result()
        said = {"do": "publish", "upload": self._name, "size": self._at, "keep": keep}
        return int(self._keeping.ask(said).result().head["version"])

    def drop(self) -> None:
        """Drop what was written at the client, if it can be reached at once."""
        with contextlib.suppress(Exception):
            self._keeping.ask({"do": "drop", "upload": self._name}, patience=_DROPPED_WITHIN)

    def _flush(self) -> None:
        if not self._piece:
            return
        while self._asked and self._asked[0].answered:
            self._asked.popleft().result()
        head = {"do": "write", "upload": self._name, "at": self._at, **self._of}
        self._asked.append(self._keeping.ask(head, bytes(self._piece)))
        self._at += len(self._piece)
        self._piece.clear()


def _write_at(fd: int, data: memoryview, at: int) -> None:
    while len(data):
        written = os.pwrite(fd, data, at)
        at += written
        data = data[written:]
