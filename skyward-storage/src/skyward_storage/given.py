"""What may be given: endpoints, buckets, keys, files; all of it is checked before anything is sent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from skyward.errors import ConfigError

__all__ = ["bucket_name", "endpoint_url", "key_prefix", "object_key", "paths_below", "source_path", "target_path"]

LONGEST_KEY = 1024
"""Bytes of the longest key that S3 takes."""

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_ARN = re.compile(r"arn:[a-z-]+:s3[a-z-]*:[A-Za-z0-9_/:.-]+")


def endpoint_url(value: object) -> str:
    """
    Return the address of an object store without a slash at its end.

    Args:
        value: What was written.

    Raises:
        ConfigError: If it is no address over HTTP, or has a password in it.

    >>> endpoint_url("https://s3.example.org/")
    'https://s3.example.org'
    >>> endpoint_url("s3.example.org")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: endpoint must begin with https://, not 's3.example.org'. Write https://s3.example.org
    """
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"endpoint must be the address of an object store, not {value!r}.")
    text = value.strip().rstrip("/")
    if not text.startswith(("https://", "http://")):
        wanted = None if "://" in text or text.startswith("/") else f"Write https://{text}"
        raise ConfigError(f"endpoint must begin with https://, not {text!r}.", hint=wanted)
    parts = urlsplit(text)
    if parts.username or parts.password:
        raise ConfigError(
            "endpoint must have no user and no password in it.", hint="Give access_key= and secret_key= instead."
        )
    if not parts.hostname or parts.query or parts.fragment or re.search(r"\s", text):
        raise ConfigError(f"endpoint must be an address such as https://s3.example.org, not {text!r}.")
    return text


def bucket_name(value: object) -> str:
    """
    Return the name of a bucket.

    Args:
        value: What was written; the ARN of an access point will do.

    Raises:
        ConfigError: If no bucket can have this name.

    >>> bucket_name("s3://my-bucket/")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: bucket must be a name alone, not 's3://my-bucket/'. Write 'my-bucket'.
    """
    if not isinstance(value, str):
        raise ConfigError(f"bucket must be text, not {value!r}.")
    if _ARN.fullmatch(value) or (_BUCKET.fullmatch(value) and ".." not in value):
        return value
    bare = value.partition("://")[2].partition("/")[0] if "://" in value else value.strip("/").partition("/")[0]
    if bare != value and _BUCKET.fullmatch(bare):
        raise ConfigError(f"bucket must be a name alone, not {value!r}.", hint=f"Write {bare!r}.")
    raise ConfigError(
        f"bucket must be the name of a bucket, not {value!r}.",
        hint="It has 3 characters at least: letters, digits, dots and hyphens.",
    )


def object_key(value: object) -> str:
    """
    Return the key of an object.

    Args:
        value: What was written.

    Raises:
        ConfigError: If it is empty, too long, or a name that no folder could hold.

    >>> object_key("a/../b")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: key must have no '..' between its slashes, but is 'a/../b'.
    """
    key = key_prefix(value, "key")
    if not key:
        raise ConfigError("key must not be empty.", hint="Name the object, such as 'checkpoints/model.pt'.")
    for part in key.split("/"):
        if part in (".", ".."):
            raise ConfigError(f"key must have no {part!r} between its slashes, but is {key!r}.")
    return key


def key_prefix(value: object, parameter: str = "prefix") -> str:
    """
    Return what keys begin with, which may be empty.

    Args:
        value: What was written.
        parameter: Name of the parameter that it was written for.

    Raises:
        ConfigError: If no key can begin with it.

    >>> key_prefix("checkpoints/")
    'checkpoints/'
    """
    if not isinstance(value, str):
        raise ConfigError(f"{parameter} must be text, not {value!r}.")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise ConfigError(f"{parameter} must be Unicode text, which {value!r} is not.") from None
    if "\0" in value:
        raise ConfigError(f"{parameter} must have no NUL in it, but is {value!r}.")
    if size > LONGEST_KEY:
        raise ConfigError(f"{parameter} must have {LONGEST_KEY} bytes at most, and {value[:40]!r}... has {size}.")
    return value


def source_path(value: object) -> Path:
    """
    Return the file or folder that is to be uploaded.

    Args:
        value: What was written.

    Raises:
        ConfigError: If it is not there, or is neither.
    """
    path = _path(value)
    if not path.exists():
        raise ConfigError(f"local_path {str(path)!r} is not there.", hint=f"Paths begin at {Path.cwd()}.")
    if not path.is_file() and not path.is_dir():
        raise ConfigError(f"local_path {str(path)!r} is neither a file nor a folder.")
    return path


def target_path(value: object, key: str) -> Path:
    """
    Return where an object, or a prefix that ends with a slash, is to be written.

    Args:
        value: What was written: a file, or a folder that is there or ends with a slash.
        key: The object's key.

    Raises:
        ConfigError: If a file is in the way of a folder.
    """
    path = _path(value)
    if key.endswith("/"):
        if path.exists() and not path.is_dir():
            raise ConfigError(
                f"local_path {str(path)!r} must be a folder, because {key!r} is a prefix.", hint="It is a file."
            )
        return path
    if path.is_dir() or os.fspath(str(value)).endswith("/"):
        return path / PurePosixPath(key).name
    return path


def paths_below(prefix: str, keys: Iterable[str]) -> Mapping[str, PurePosixPath]:
    """
    Return where each object of a prefix is to be written, below a folder; what only marks a folder is left out.

    Args:
        prefix: What the keys begin with.
        keys: The keys.

    Raises:
        ConfigError: If one leads out of the folder, or cannot be a file beside the others.

    >>> paths_below("a/", ["a/", "a/b/c"])
    {'a/b/c': PurePosixPath('b/c')}
    >>> paths_below("a/", ["a/../../etc/passwd"])
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: The object 'a/../../etc/passwd' would be written outside of the folder...
    """
    found: dict[str, PurePosixPath] = {}
    for key in keys:
        rest = key.removeprefix(prefix)
        if not rest or rest.endswith("/"):
            continue
        if any(part in ("", ".", "..") or "\0" in part for part in rest.split("/")):
            raise ConfigError(
                f"The object {key!r} would be written outside of the folder, or has no name that a file can have.",
                hint="Nothing was written. Download the others by their keys.",
            )
        found[key] = PurePosixPath(rest)
    folders = {parent for path in found.values() for parent in path.parents}
    for key, path in found.items():
        if path in folders:
            raise ConfigError(
                f"The object {key!r} cannot be a file, because other keys have it as their folder.",
                hint="Nothing was written. Download the two apart.",
            )
    return found


def _path(value: object) -> Path:
    """Return a local path; the user's home may be written as a tilde."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise ConfigError(f"local_path must be the path of a file or folder, not {value!r}.")
    text = os.fspath(value)
    if not isinstance(text, str) or "\0" in text:
        raise ConfigError(f"local_path must be text, not {text!r}.")
    return Path(text).expanduser()
