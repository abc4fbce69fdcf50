"""
Files of the user's modules, written where a node's workers import them from.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from skyward.errors import ProtocolError

_counter: Final = itertools.count()


def write_files(root: str | os.PathLike[str], entries: Iterable[tuple[str, bytes]]) -> tuple[str, ...]:
    """
    Write files below a folder and return the paths whose contents changed.

    Each file appears whole or not at all, and a file that is there already is left alone.
    Python's own caches of changed sources are removed, because they notice a change only by second and size.
    A process that looked for a module before its file was here has to call `importlib.invalidate_caches()`.

    Args:
        root: The folder, made where it is missing.
        entries: Relative paths with forward slashes, and contents.

    Raises:
        ProtocolError: A path is absolute, climbs with `..` or leaves the folder through a link; nothing is written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_files(folder, [("pkg/__init__.py", b"")]), write_files(folder, [("pkg/__init__.py", b"")])
    (('pkg/__init__.py',), ())
    """
    top = Path(root).resolve()
    wanted = [(path, _target(top, path), data) for path, data in entries]
    changed = []
    for path, target, data in wanted:
        if not _holds(target, data):
            target.parent.mkdir(parents=True, exist_ok=True)
            _replace(target, data)
            _forget_bytecode(target)
            changed.append(path)
    return tuple(changed)


def write_packed(root: str, body: bytes, fds: tuple[int, ...]) -> None:
    """
    Write the files of a FILES frame below a folder.

    Args:
        root: The folder.
        body: The frame's body.
        fds: The descriptors that came with it.

    Raises:
        ProtocolError: As `write_files` does.
    """
    # Late, because an agent that is sent no files has no use for what payloads are pickled by.
    from skyward.link.payload import decode, views

    paths, *contents = views(decode(body, 0, fds))
    write_files(root, zip(json.loads(bytes(paths)), map(bytes, contents), strict=True))


def _target(top: Path, path: str) -> Path:
    """
    Return where a path lies, and refuse those that lie elsewhere.
    """
    given: object = path
    if not isinstance(given, str):
        raise ProtocolError(f"A file for the node has the path {given!r}, which is no text.")
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in path or "\0" in path:
        raise ProtocolError(f"A file for the node has the path {path!r}, which is no relative path below its folder.")
    target = top.joinpath(*parts)
    if not target.parent.resolve().is_relative_to(top):
        raise ProtocolError(f"A file for the node has the path {path!r}, which leaves its folder through a link.")
    return target


def _holds(target: Path, data: bytes) -> bool:
    try:
        # A link is replaced and never followed.
        return not target.is_symlink() and target.stat().st_size == len(data) and target.read_bytes() == data
    except OSError:
        return False


def _replace(target: Path, data: bytes) -> None:
    draft = target.with_name(f".{os.getpid()}.{next(_counter)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(data)
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _forget_bytecode(target: Path) -> None:
    cache = target.parent / "__pycache__"
    if target.suffix == ".py" and cache.is_dir():
        for entry in cache.iterdir():
            if entry.name.startswith(f"{target.stem}.") and entry.suffix == ".pyc":
                entry.unlink(missing_ok=True)
