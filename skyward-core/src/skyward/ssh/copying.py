"""Files and folders of this machine and another one, copied as an archive through its SSH connection."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import tarfile
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from skyward.blocking import in_thread
from skyward.errors import ConfigError, NodeError
from skyward.ssh.attached_command import Streams, attached
from skyward.ssh.shell import run, script_line

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

__all__ = ["fetch", "send"]

LOOKING = 30.0
"""Seconds in which the machine says what is at a path."""


async def send(connection: SSHClientConnection, source: str, target: str, where: str) -> None:
    """
    Copy a file or a folder to a machine: into a folder that is there, else under the new name.

    Args:
        connection: The machine.
        source: What is copied.
        target: The path there; one that is relative begins at the user's home.
        where: What messages call the machine.

    Raises:
        ConfigError: If there is nothing to copy.
        NodeError: If it cannot be written there.
    """
    path = Path(source)
    if not await in_thread(path.exists):
        raise ConfigError(f"There is no file {source!r} here.")
    looked = await run(connection, f"cd && test -d {_spelled(target)}", timeout=LOOKING)
    inside = target.endswith("/") or not looked.code
    folder = target if inside else str(PurePosixPath(target).parent)
    # The name of the folder itself where "." is typed.
    own = await in_thread(os.path.abspath, source)
    name = Path(own).name if inside else PurePosixPath(target).name

    def pack(file: IO[bytes]) -> None:
        with tarfile.open(fileobj=file, mode="w|") as archive:
            archive.add(path, arcname=name)

    script = f"cd && mkdir -p {_spelled(folder)} && exec tar -xf - -C {_spelled(folder)}"
    await _piped(connection, script, pack, f"{source} could not be copied to {where}", sends=True)


async def fetch(connection: SSHClientConnection, source: str, target: str, where: str) -> None:
    """
    Copy a file or a folder from a machine: into a folder that is here, else under the new name.

    Nothing is written outside of that, whatever the machine sends.

    Args:
        connection: The machine.
        source: The path there.
        target: The path here.
        where: What messages call the machine.

    Raises:
        NodeError: If it is not there, or cannot be read.
        OSError: If it cannot be written here.
    """
    path = PurePosixPath(source)
    if not path.name or path.name == "..":
        raise ConfigError(f"{source!r} names no file or folder of its own.", hint="Name the folder itself.")
    folder, name = await in_thread(_place, target, path.name)

    def unpack(file: IO[bytes]) -> None:
        with tarfile.open(fileobj=file, mode="r|") as archive:
            # What Python takes for safe, where it has an opinion, beside what is looked at below.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            for member in archive:
                _extract(archive, member, folder, path.name, name)

    script = f"cd && exec tar -cf - -C {_spelled(str(path.parent))} {shlex.quote(f'./{path.name}')}"
    await _piped(connection, script, unpack, f"{source} of {where} could not be copied", sends=False)


def _place(target: str, name: str) -> tuple[Path, str]:
    """Return the folder of this machine that a copy is in, which is made where it is missing, and the copy's name."""
    inside = target.endswith("/") or os.path.isdir(target)
    folder, name = (Path(target), name) if inside else (Path(target).absolute().parent, Path(target).name)
    folder.mkdir(parents=True, exist_ok=True)
    return folder, name


def _spelled(path: str) -> str:
    """Return a path for a shell; what begins with `~/` is in the home, as every relative path is."""
    path = path.removeprefix("~/") or "."
    return shlex.quote(path if not path.startswith("-") else f"./{path}")


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, before: str, after: str) -> None:
    """Write one file or folder under its new name."""
    parts = PurePosixPath(member.name).parts
    if not parts or parts[0] != before or ".." in parts or not (member.isfile() or member.isdir()):
        # Links and devices: what they lead to may be anything.
        return
    member.name = str(PurePosixPath(after, *parts[1:]))
    member.mode &= 0o777
    member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
    archive.extract(member, folder, set_attrs=member.isfile())


async def _piped(
    connection: SSHClientConnection, script: str, do: Callable[[IO[bytes]], None], failed: str, *, sends: bool
) -> None:
    """Run a command, with a thread at the other end of its input or output."""
    ours, theirs = socket.socketpair()
    errors: list[Exception] = []

    def work() -> None:
        try:
            with ours, ours.makefile("wb" if sends else "rb") as file:
                do(file)
                # What follows the end of an archive is read as well, so that its writer ends.
                while not sends and file.read(1 << 16):
                    pass
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=work, name="skyward-archive", daemon=True)
    with theirs, tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as nothing:
        source, sink = (theirs, nothing) if sends else (nothing, theirs)
        streams = Streams(source=source.fileno(), sink=sink.fileno(), errors=said.fileno())
        thread.start()
        try:
            code = await attached(connection, script_line(script), streams)
        except BrokenPipeError:
            # The thread says why it reads no more.
            code = 0
        finally:
            with contextlib.suppress(OSError):
                theirs.shutdown(socket.SHUT_RDWR)
            thread.join()
        said.seek(0)
        lines = said.read().decode("utf-8", "replace").strip().splitlines()[-3:]
    if code:
        raise NodeError(f"{failed}: {' '.join(lines) or f'tar ended with {code}'}")
    if errors:
        raise NodeError(f"{failed}: {errors[0]}") from errors[0]
