"""Settings of a pool file that need the user's trust: endpoints, credentials, and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["fingerprint", "wishes"]

# Words in the name of a provider's setting, of whatever distribution: an address, something secret, something to run.
_WORDS = frozenset(
    "address api cmd command config credential credentials endpoint exec file home jump key keyfile keys password "
    "program proxy secret server token trust uri url".split()
)
_NAMES = frozenset({"known_hosts", "login"})


def wishes(document: Mapping[str, Any]) -> tuple[str, ...]:
    """
    List the settings of a file that are taken only from one which the user trusts.

    Those are addresses of APIs, keys and files of keys, commands, files outside of the file's own folder, and trust in
    the code of nodes.

    Args:
        document: The file, as TOML was read.

    Returns:
        Each with its place; of what is secret, the name only.

    >>> wishes({"pools": {"train": {"provider": {"type": "DigitalOcean", "endpoint": "https://evil.example"}}}})
    ("pools.train.provider.endpoint = 'https://evil.example'",)
    >>> wishes({"pools": {"train": {"provider": {"type": "AWS", "region": "eu-west-1"}, "nodes": 2}}})
    ()
    """
    pools = document.get("pools")
    found: list[str] = []
    for name, table in pools.items() if isinstance(pools, Mapping) else ():
        if isinstance(table, Mapping):
            found += _of_pool(f"pools.{name}", table)
    return tuple(found)


def fingerprint(path: str, content: bytes) -> str:
    """
    Name a file with this content at this place; the same content elsewhere, or another here, has another name.

    Args:
        path: The file's absolute path.
        content: What is in it.

    >>> fingerprint("/a", b"x") == fingerprint("/b", b"x")
    False
    """
    import hashlib

    return hashlib.sha256(path.encode(errors="surrogateescape") + b"\0" + content).hexdigest()


def _of_pool(where: str, table: Mapping[str, Any]) -> Iterator[str]:
    for key in ("provider", "plugins"):
        given = table.get(key)
        for entry in given if isinstance(given, list) else [given]:
            yield from _settings(f"{where}.{key}", entry)
    for key in ("volumes", "volume"):
        given = table.get(key)
        for entry in given if isinstance(given, list) else [given]:
            if isinstance(entry, Mapping) and "storage" in entry:
                yield f"{where}.{key}.storage = {entry['storage']!r}"
    # Only less trust than the provider's own may come with a project.
    if table.get("trust", "data") != "data":
        yield f"{where}.trust = {table['trust']!r}"
    options = table.get("options")
    for place, part in ((where, table), (f"{where}.options", options)):
        if not isinstance(part, Mapping):
            continue
        image, log = part.get("image"), part.get("logging")
        if isinstance(image, Mapping):
            yield from _of_image(f"{place}.image", image)
        if isinstance(log, Mapping) and "file" in log:
            yield f"{place}.logging.file = {log['file']!r}"


def _of_image(where: str, image: Mapping[str, Any]) -> Iterator[str]:
    commands = image.get("shell_vars")
    if isinstance(commands, Mapping):
        yield from (f"{where}.shell_vars.{name} = {text!r}" for name, text in commands.items())
    included = image.get("includes")
    for path in included if isinstance(included, list) else [included]:
        if isinstance(path, str) and (path.startswith(("/", "~")) or ".." in path.split("/")):
            yield f"{where}.includes = {path!r}"


def _settings(where: str, entry: object) -> Iterator[str]:
    """List what one provider or plugin is given that matters; tables within it as well."""
    if isinstance(entry, list):
        for each in entry:
            yield from _settings(where, each)
    if not isinstance(entry, Mapping):
        return
    for name, value in entry.items():
        words = set(re.split(r"[_-]", str(name).lower()))
        if words & _WORDS or str(name).lower() in _NAMES:
            secret = words & {"key", "keys", "password", "secret", "token", "credential", "credentials"}
            yield f"{where}.{name}" if secret else f"{where}.{name} = {value!r}"
        elif isinstance(value, str) and "://" in value:
            yield f"{where}.{name} = {value!r}"
        else:
            yield from _settings(f"{where}.{name}", value)
