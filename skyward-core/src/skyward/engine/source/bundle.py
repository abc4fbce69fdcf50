"""The client's side of a node, packed to travel to machines that do not have it."""

from __future__ import annotations

import functools
import io
import tarfile
from pathlib import Path
from typing import NamedTuple

from skyward.engine.source.environment import locked, runtime_directory


class Bundle(NamedTuple):
    """What is sent: its digest, and a compressed archive of it."""

    digest: str
    path: Path

    def read(self) -> bytes:
        """Return the archive's bytes."""
        return self.path.read_bytes()


@functools.cache
def runtime_bundle() -> Bundle:
    """
    Pack our side of a node and what it needs, from the files that this client runs.

    Client and nodes never differ, no index is asked for a name of ours, and an editable install works as any other.

    Raises:
        ProvisionError: If a package has no directory that could be sent.
    """
    directory = runtime_directory()
    archive = directory.with_name(f"{directory.name}.tar.gz")
    with locked(directory.with_suffix(".lock")):
        if not archive.exists():
            made = archive.with_suffix(".new")
            made.write_bytes(_packed(directory))
            made.rename(archive)
    return Bundle(directory.name, archive)


def _packed(directory: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=9) as tar:
        for path in sorted(directory.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                tar.add(path, path.relative_to(directory).as_posix(), filter=_anonymous)
    return buffer.getvalue()


def _anonymous(info: tarfile.TarInfo) -> tarfile.TarInfo:
    """Remove whose file it is here."""
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    info.mode = 0o644
    return info
