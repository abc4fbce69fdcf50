"""Where tasks keep checkpoints for which they name no place: on a volume of their pool that survives its nodes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from skyward.model.spec.volumes import Disk, VolumeLike

__all__ = ["checkpoint_folder"]

NAME = "skyward-checkpoints"


def checkpoint_folder(volumes: Iterable[VolumeLike]) -> str | None:
    """
    Return the folder of the first volume on which a file is durable once it is synced; None where there is none.

    A bucket is no such volume: a file is uploaded after it was closed, and its node may be lost before that.

    Args:
        volumes: The pool's.

    >>> checkpoint_folder([Disk("training-data", mount="/data")])
    '/data/skyward-checkpoints'
    >>> checkpoint_folder([Disk("training-data")])
    """
    for volume in volumes:
        if volume.mount is None:
            # The cloud says where it is, and only once it is asked.
            continue
        if isinstance(volume, Disk) or (isinstance(volume.storage, Path) and not volume.read_only):
            return f"{volume.mount}/{NAME}"
    return None
