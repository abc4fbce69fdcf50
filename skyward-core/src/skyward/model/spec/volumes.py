"""
What nodes find as folders: buckets of object stores, and disks that a cloud keeps.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias, cast
from urllib.parse import unquote, urlsplit

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import choice, suggesting, switch, text
from skyward.model.spec.mount_folder import in_the_way, mount_folder

__all__ = ["Disk", "S3Volume", "Volume", "VolumeLike", "volumes"]

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_SECRETS = ("credentials_async", "credentials")


def _bucket(value: object) -> str:
    """Return the name of a bucket, checked."""
    name = text(value, "bucket")
    if not _BUCKET.fullmatch(name):
        bare = name.partition("://")[2].partition("/")[0] or name.strip("/").partition("/")[0]
        rule = "A name has 2 to 255 letters, digits, dots, hyphens and underscores; a letter or digit first."
        hint = f'Write bucket="{bare}"; what follows it is prefix=.' if _BUCKET.fullmatch(bare) else rule
        raise ConfigError(f"bucket must be the name of a bucket, not {name!r}.", hint=hint)
    return name


def _prefix(value: object) -> str:
    """Return the prefix of a folder in a bucket, with a slash at its end; empty for the whole bucket."""
    if value == "":
        return ""
    prefix = text(value, "prefix").strip("/")
    steps = prefix.split("/")
    if any(step in ("", ".", "..") for step in steps) or not prefix.isprintable():
        raise ConfigError(
            f"prefix must be a folder in the bucket, not {value!r}.", hint='Write prefix="datasets/2026".'
        )
    return f"{prefix}/"


def _mount(value: object) -> str:
    """Return the folder of a volume, checked."""
    return mount_folder(value)


def _disk_mount(value: object) -> str | None:
    """Return the folder of a disk, checked; None for the one that its name gives."""
    return None if value is None else mount_folder(value)


def _storage(value: object) -> Any:
    """Return what holds the bucket: an object store, or a folder as a `Path`."""
    if value is None:
        return None
    if isinstance(value, (str, os.PathLike)):
        return _folder(os.fspath(value))
    keys = any(callable(getattr(value, name, None)) for name in _SECRETS) or hasattr(value, "access_key")
    if isinstance(value, type) or not isinstance(getattr(value, "endpoint", None), str) or not keys:
        name = value.__name__ if isinstance(value, type) else type(value).__name__
        raise ConfigError(
            f"storage must be a sky.Storage or a folder, not {name}.",
            hint='Write storage=sky.storage.S3(region="eu-central-1"), or storage="/srv/buckets" for sky.Local().',
        )
    return value


def _folder(given: str | bytes) -> Path:
    """Return a folder that stands for an object store."""
    path = os.fsdecode(given)
    if path.startswith("file:"):
        parts = urlsplit(path)
        path = unquote(parts.path) if parts.netloc in ("", "localhost") else ""
    if not os.path.isabs(path) or "\0" in path:
        # The text may be an address with a key in it.
        raise ConfigError(
            "storage must be a sky.Storage or the absolute path of a folder.",
            hint='Write storage=sky.Storage("https://s3.example.org", ...) or storage="/srv/buckets".',
        )
    return Path(os.path.normpath(path))


def _shown(storage: Any) -> str:
    """Return what tells stores apart, without any key."""
    if storage is None or isinstance(storage, Path):
        return repr(None if storage is None else str(storage))
    return f"{type(storage).__name__}({storage.endpoint!r})"


def _name(value: object) -> str:
    """Return the name or id of a disk, checked."""
    return text(value, "name")


def _type(value: object) -> Literal["mount", "sync"]:
    """Return how a volume comes to nodes, checked."""
    return cast("Literal['mount', 'sync']", choice(value, "type", ("mount", "sync")))


@suggesting
@frozen
class Volume:
    """
    Give nodes a bucket, or what has a prefix in it, as a folder.

    Args:
        bucket: The bucket. It has to exist.
        mount: The folder at which nodes find it: an absolute path, and none of the system's.
        prefix: The folder in the bucket that is meant; all of the bucket by default.
        read_only: Whether tasks can only read. Otherwise what they write is in the bucket when the pool has ended.
        storage: Where the bucket is: a `sky.Storage`, such as `sky.storage.R2(...)`; for `sky.Local()` also a folder
            that holds a folder with the bucket's name. None for the provider's own object store.
        type: `"mount"` reads and writes the objects when files are used; `"sync"` copies all of them to the node's
            disk before the first task, and then what changes on either side to the other.

    Raises:
        ConfigError: If a setting cannot be.

    >>> Volume("my-data", "/data", prefix="datasets")
    Volume(bucket='my-data', mount='/data', prefix='datasets/', read_only=True, storage=None, type='mount')
    """

    USUAL: ClassVar[str] = 'Write sky.Volume(bucket="my-data", mount="/data").'

    bucket: str = field(converter=_bucket)
    mount: str = field(converter=_mount)
    prefix: str = field(default="", converter=_prefix)
    read_only: bool = field(default=True, validator=switch)
    storage: Any = field(default=None, converter=_storage, repr=_shown)
    type: Literal["mount", "sync"] = field(default="mount", converter=_type)

    @property
    def title(self) -> str:
        """
        Return what errors and logs call it.

        >>> Volume("my-data", "/data", prefix="datasets").title
        "the volume 'my-data/datasets/' at /data"
        """
        return f"the volume {f'{self.bucket}/{self.prefix}' if self.prefix else self.bucket!r} at {self.mount}"


@suggesting
@frozen
class Disk:
    """
    Give nodes a disk that the cloud keeps, such as a network volume, as a folder.

    Args:
        name: Its name or id. It has to exist.
        mount: The folder at which nodes find it; `/mnt/NAME` by default, or what the cloud prescribes.

    Raises:
        ConfigError: If a setting cannot be.

    >>> Disk("training-data", mount="/data")
    Disk(name='training-data', mount='/data')
    """

    USUAL: ClassVar[str] = 'Write sky.Disk("training-data", mount="/data").'

    name: str = field(converter=_name)
    mount: str | None = field(default=None, converter=_disk_mount)

    @property
    def title(self) -> str:
        """
        Return what errors and logs call it.

        >>> Disk("training-data").title
        "the disk 'training-data'"
        """
        return f"the disk {self.name!r}" + (f" at {self.mount}" if self.mount else "")


def S3Volume(
    bucket: str,
    mount_path: str,
    prefix: str = "",
    read_only: bool = True,  # noqa: FBT001, FBT002
    storage: Any = None,
    *,
    type: Literal["mount", "sync"] = "mount",  # noqa: A002
) -> Volume:
    """
    Return a `Volume`, whose `mount` is called `mount_path` here.

    Args:
        bucket: The bucket.
        mount_path: The folder at which nodes find it.
        prefix: The folder in the bucket that is meant.
        read_only: Whether tasks can only read.
        storage: Where the bucket is; None for the provider's own object store.
        type: `"mount"` or `"sync"`.

    Raises:
        ConfigError: If a setting cannot be.

    >>> S3Volume(mount_path="/data", bucket="my-bucket", prefix="datasets/", read_only=True).mount
    '/data'
    """
    folder = mount_folder(mount_path, "mount_path")
    return Volume(bucket, folder, prefix, read_only, storage, type)


VolumeLike: TypeAlias = Volume | Disk
"""A bucket or a disk, each as a folder."""


def volumes(value: Any, parameter: str = "volumes") -> tuple[VolumeLike, ...]:
    """
    Return the volumes of a spec as a tuple, refusing those that cannot be beside each other.

    Args:
        value: A list of volumes and disks, or one of them.
        parameter: Name of the parameter that it was written for.

    Raises:
        ConfigError: If one is neither, a disk is there twice, or two have mount points that lie in each other.

    >>> volumes(Disk("training-data"))
    (Disk(name='training-data', mount=None),)
    """
    usual = f'Write {parameter}=[sky.Volume(bucket="my-data", mount="/data")].'
    if isinstance(value, (Volume, Disk)):
        return (value,)
    if value is None or isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
        raise ConfigError(f"{parameter} must be a list of volumes, not {_kind(value)}.", hint=usual)
    given = tuple(value)
    for one in given:
        if not isinstance(one, (Volume, Disk)):
            raise ConfigError(f"{parameter} must be a list of volumes; {_kind(one)} is none.", hint=usual)
    twice = [name for name, count in Counter(one.name for one in given if isinstance(one, Disk)).items() if count > 1]
    if twice:
        raise ConfigError(f"{parameter} has the disk {twice[0]!r} more than once.", hint="Write it once.")
    if pair := in_the_way(one.mount for one in given if one.mount is not None):
        outer, inner = pair
        said = f"{outer} for two volumes" if outer == inner else f"{inner} inside of {outer}"
        raise ConfigError(f"{parameter} has the mount point {said}.", hint="Give each a folder outside of the others.")
    return given


def _kind(value: object) -> str:
    """Return what errors call something that is no volume; text may hold a key."""
    if value is None or isinstance(value, type):
        return "None" if value is None else f"the class {value.__name__}"
    return f"a {type(value).__name__}"
