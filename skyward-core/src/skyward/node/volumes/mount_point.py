"""The folder of a volume on a machine: made, checked, freed of what is mounted there, and removed."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from pathlib import Path

from skyward.node.tool_install import superuser
from skyward.node.volumes.rclone_failure import VolumeFailure

__all__ = ["MountPoint", "can_mount", "mounted"]

_COMMAND_WITHIN = 15.0
_STALE = (errno.ENOTCONN, errno.EIO, errno.ESTALE)


def can_mount() -> bool:
    """Return whether this user may mount by FUSE here, as far as that is known before it is tried."""
    helper = shutil.which("fusermount3") or shutil.which("fusermount")
    return helper is not None and os.access("/dev/fuse", os.R_OK | os.W_OK)


def mounted(path: str) -> bool:
    """
    Return whether something is mounted at a folder, which may not answer any more.

    Args:
        path: The folder.
    """
    return os.path.realpath(path) in _mounts()


class MountPoint:
    """
    Hold one folder, and what was made for it.

    Args:
        path: The folder.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._made: list[str] = []

    def prepare(self) -> VolumeFailure | None:
        """Make the folder, and return why it cannot be used: something is mounted there, or it has files in it."""
        kind = _mounts().get(os.path.realpath(self.path))
        if kind is not None:
            if not (kind.startswith("fuse") and self._is_stale()):
                return VolumeFailure(
                    "ConfigError",
                    f"Something is mounted at {self.path} ({kind}).",
                    f"Unmount it with `umount {self.path}`, or write another mount=.",
                )
            self.unmount()
        try:
            self._make()
            found = next(iter(sorted(os.listdir(self.path))), None)
        except OSError as error:
            reason = f"The folder {self.path} cannot be used: {error.strerror}."
            return VolumeFailure("ConfigError", reason, "Write a mount= that the login user can make.")
        if found is not None:
            return VolumeFailure(
                "ConfigError",
                f"The folder {self.path} is not empty: it has {found!r} in it.",
                "Empty it, or write another mount=: what is in it would be hidden.",
            )
        return None

    def unmount(self) -> None:
        """Take away what is mounted there, also if it is used or does not answer any more."""
        for words in (["fusermount3", "-u", "-z"], ["fusermount", "-u", "-z"], ["umount", "-l"]):
            if not mounted(self.path):
                return
            _failed([*words, self.path])

    def empty(self) -> None:
        """Remove what is in the folder."""
        for entry in Path(self.path).iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folders that were made, as far as they are empty."""
        for folder in reversed(self._made):
            try:
                os.rmdir(folder)
            except OSError:
                sudo = superuser()
                if not sudo or _failed([*sudo, "rmdir", folder]):
                    return
        self._made.clear()

    def _is_stale(self) -> bool:
        try:
            os.stat(self.path)
        except OSError as error:
            return error.errno in _STALE
        return False

    def _make(self) -> None:
        missing: list[str] = []
        folder = self.path
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        for each in reversed(missing):
            try:
                os.mkdir(each, 0o755)
            except FileExistsError:
                continue
            except PermissionError:
                sudo = superuser()
                owner = ["-o", str(os.geteuid()), "-g", str(os.getegid())]
                if not sudo or _failed([*sudo, "install", "-d", "-m", "755", *owner, each]):
                    raise
            self._made.append(each)


def _mounts() -> dict[str, str]:
    """Return the kind of what is mounted at each folder of this machine."""
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return {}
    found = {}
    for line in text.splitlines():
        fields = line.split(" ")
        found[_unescaped(fields[4])] = fields[fields.index("-") + 1]
    return found


def _unescaped(path: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path


def _failed(words: list[str]) -> bool:
    """Run a command, and return whether it failed."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_COMMAND_WITHIN,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return True
    return done.returncode != 0
