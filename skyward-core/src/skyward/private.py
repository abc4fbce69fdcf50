"""
Directories and files that are this user's alone.

Whatever Skyward enters, imports from, executes or deletes lies in such a directory.
It is one if only this user and the machine's administrator can change it or any step of the way to it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

from skyward.errors import ConfigError

__all__ = ["MARK", "directory", "entry", "opened", "program", "remove", "replace"]

MARK = ".skyward"
"""The name of the file that lists what Skyward made in a directory; a dot stands for the directory itself."""

_LINKS = 40
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def directory(path: str | os.PathLike[str], *, hint: str | None = None) -> Path:
    """
    Make a directory that is this user's alone, with all above it that is missing, or check one that is there.

    It is made with mode 0700, whatever the umask. Links on the way are followed if no other user can change them.

    Args:
        path: Where it is; `~` is the user's home.
        hint: What to do about a refusal, besides mending the directory.

    Returns:
        The path, absolute.

    Raises:
        ConfigError: If another user owns it, could write into it, or could put another in its place.
        OSError: If it cannot be made.
    """
    target = Path(os.path.abspath(os.path.expanduser(path)))
    there = _followed(target, hint)
    facts = os.lstat(there)
    if not stat.S_ISDIR(facts.st_mode):
        raise NotADirectoryError(f"{there} is no directory")
    if facts.st_uid != os.geteuid():
        raise _refusal(target, there, f"belongs to {_user(facts.st_uid)}", hint)
    if _open_to_others(facts):
        raise _refusal(target, there, "can be written by other users", hint, mend=f"chmod go-w {there}")
    return target


def entry(root: str | os.PathLike[str], name: str, *, hint: str | None = None) -> Path:
    """
    Make a directory in one that is this user's alone, or check one that is there.

    The new directory is listed, to distinguish it later from those that were there before.

    Args:
        root: The directory around it; made where it is missing, and listed then, too.
        name: Its name.
        hint: As of `directory`.

    Raises:
        ConfigError: As of `directory`.
        OSError: If it cannot be made.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as root:
    ...     entry(root, "runtime").is_dir(), Path(root, MARK).read_text()
    (True, 'runtime\\n')
    """
    base = Path(root).expanduser()
    if not os.path.lexists(base):
        _list(directory(base, hint=hint), ".")
    path = directory(base, hint=hint) / name
    if not os.path.lexists(path):
        _list(base, name)
    return directory(path, hint=hint)


def _list(base: Path, name: str) -> None:
    """Record that something in a directory is ours."""
    with os.fdopen(opened(base / MARK, os.O_RDWR | os.O_CREAT | os.O_APPEND), "a+") as file:
        file.seek(0)
        if name not in file.read().splitlines():
            file.write(f"{name}\n")


def opened(path: str | os.PathLike[str], flags: int) -> int:
    """
    Open a file in a directory that is this user's alone, and return its descriptor.

    It is made with mode 0600, whatever the umask, if the flags have it made; a link is not followed.

    Args:
        path: The file.
        flags: As of `os.open`.

    Raises:
        ConfigError: If it is no file, or another user owns it or could write it.
        OSError: If it cannot be opened; `ELOOP` if it is a link.
    """
    # O_NONBLOCK, because opening a named pipe would block otherwise.
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise _refusal(Path(path), Path(path), "is no file", None)
        if facts.st_uid != os.geteuid():
            raise _refusal(Path(path), Path(path), f"belongs to {_user(facts.st_uid)}", None)
        if facts.st_mode & 0o777 != 0o600:
            os.fchmod(descriptor, 0o600)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def replace(path: Path, data: bytes) -> None:
    """
    Write a file in place of the one before, with mode 0600: what reads it finds the old one or the whole new one.

    Until it is whole on the disk it has a hidden name, with a dot before its own.

    Args:
        path: The file, in a directory that is this user's alone.
        data: What it holds.

    Raises:
        ConfigError: As of `opened`.
        OSError: If it is not on the disk; the one before is there then.
    """
    hidden = path.with_name(f".{path.name}")
    try:
        with open(opened(hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        hidden.rename(path)
    except OSError:
        with contextlib.suppress(OSError):
            hidden.unlink()
        raise


def program(path: str | os.PathLike[str], *, hint: str | None = None) -> Path:
    """
    Check, before a program is run, that no other user can change it or any folder on its path.

    Args:
        path: The program.
        hint: As of `directory`.

    Returns:
        The path, absolute.

    Raises:
        ConfigError: If another user owns it, or could write or replace it.
        FileNotFoundError: If it is not there.
    """
    target = Path(os.path.abspath(path))
    os.stat(target)
    there = _followed(target, hint)
    facts = os.lstat(there)
    if facts.st_uid not in _trusted():
        raise _refusal(target, there, f"belongs to {_user(facts.st_uid)}", hint)
    if _open_to_others(facts):
        raise _refusal(target, there, "can be written by other users", hint, mend=f"chmod go-w {there}")
    return target


def remove(path: str | os.PathLike[str]) -> None:
    """
    Remove a directory of this user's with all that is in it; a link is not followed.

    Nothing is raised: what cannot be removed stays, and so does whatever is another user's.

    Args:
        path: The directory.
    """
    try:
        facts = os.lstat(path)
    except OSError:
        return
    if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid():
        shutil.rmtree(path, ignore_errors=True)


def _followed(path: Path, hint: str | None) -> Path:
    """Follow a path step by step, make the directories that are missing, and return where it really is."""
    trusted, links = _trusted(), 0
    here = Path(path.anchor)
    rest = list(reversed(path.parts[1:]))
    while rest:
        name = rest.pop()
        if name == "..":
            here = here.parent
            continue
        step = here / name
        try:
            facts = os.lstat(step)
        except FileNotFoundError:
            facts = _made(step)
        if facts.st_uid not in trusted:
            raise _refusal(path, step, f"belongs to {_user(facts.st_uid)}", hint)
        if stat.S_ISLNK(facts.st_mode):
            links += 1
            if links > _LINKS:
                raise _refusal(path, step, "is a link that leads in a circle", hint)
            target = Path(os.readlink(step))
            if target.is_absolute():
                here = Path(target.anchor)
            rest += reversed(target.parts[1:] if target.is_absolute() else target.parts)
            continue
        # In a directory with the sticky bit, such as /tmp, an entry can be replaced by its owner only.
        if rest and _open_to_others(facts) and not facts.st_mode & stat.S_ISVTX:
            raise _refusal(path, step, "can be written by other users", hint)
        here = step
    return here


def _made(step: Path) -> os.stat_result:
    """Make a directory; another process may do so at the same moment."""
    try:
        os.mkdir(step, 0o700)
        os.chmod(step, 0o700)
    except FileExistsError:
        pass
    return os.lstat(step)


def _trusted() -> frozenset[int]:
    """Return the users that may own a step of the way: this one, root, and the owner of the root directory."""
    return frozenset({os.geteuid(), 0, os.stat("/").st_uid})


def _open_to_others(facts: os.stat_result) -> bool:
    """Return whether others can write to something; a group of which this user is the only member is no others."""
    if facts.st_mode & stat.S_IWOTH:
        return True
    return bool(facts.st_mode & stat.S_IWGRP) and not _is_own_group(facts.st_gid)


def _is_own_group(group: int) -> bool:
    # Debian and others give every user a group of the same name, and let files be written by it.
    if group == 0 or group != os.getegid():
        return group == 0
    import grp

    try:
        return grp.getgrgid(group).gr_name == _user(os.geteuid())
    except KeyError:
        return False


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _refusal(path: Path, step: Path, why: str, hint: str | None, *, mend: str = "") -> ConfigError:
    """Return the error that says why a path is not used."""
    message = f"{path} is not used, because {'it' if path == step else step} {why}."
    advice = [f"Only you may be able to change it: {mend}." if mend else "", hint or ""]
    return ConfigError(message, hint=" ".join(filter(None, advice)) or None)
