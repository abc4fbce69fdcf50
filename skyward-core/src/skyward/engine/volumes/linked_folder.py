"""A volume of this machine whose store is a folder: a link leads from its mount point to the bucket's folder."""

from __future__ import annotations

import os
from pathlib import Path

from skyward.errors import ConfigError, NoSuchBucketError
from skyward.model.spec.volumes import Volume

__all__ = ["LinkedFolder"]


class LinkedFolder:
    """
    Lead from a mount point to a folder.

    Args:
        volume: The volume, whose storage is a folder.
    """

    def __init__(self, volume: Volume) -> None:
        self._volume = volume
        self._bucket = Path(volume.storage) / volume.bucket
        self._target = self._bucket / volume.prefix
        self._made: list[Path] = []

    def check(self) -> None:
        """
        Refuse a bucket that is not there.

        Raises:
            NoSuchBucketError: If its folder is not there.
        """
        # As in a bucket, a prefix is there once something is in it.
        needed = self._target if self._volume.read_only else self._bucket
        if not needed.is_dir():
            raise NoSuchBucketError(
                f"There is no folder {needed} for {self._volume.title}.",
                bucket=self._volume.bucket,
                endpoint=str(self._volume.storage),
                hint="Make it, or correct bucket= or storage=.",
            )

    def open(self) -> None:
        """
        Make the link.

        Raises:
            NoSuchBucketError: If the bucket's folder is not there.
            ConfigError: If the mount point is in use or cannot be made.
        """
        self.check()
        mount = Path(self._volume.mount)
        try:
            self._target.mkdir(parents=True, exist_ok=True)
            self._make(mount.parent)
            if mount.is_dir() and not mount.is_symlink():
                # Only an empty one goes.
                mount.rmdir()
            mount.symlink_to(self._target, target_is_directory=True)
        except OSError as error:
            self.close()
            raise ConfigError(
                f"{self._volume.title} cannot be made on this machine: {error.strerror} ({error.filename}).",
                hint="Empty the folder, or write another mount= that you may make.",
            ) from error
        self._made.append(mount)

    def close(self) -> None:
        """Remove the link and the folders that were made for it."""
        while self._made:
            path = self._made.pop()
            try:
                if path.is_symlink():
                    path.unlink()
                else:
                    os.rmdir(path)
            except OSError:
                # Something else is in it.
                return

    def _make(self, folder: Path) -> None:
        if folder.exists():
            return
        self._make(folder.parent)
        folder.mkdir()
        self._made.append(folder)
