"""Settings of a pool file that need the user's trust: endpoints, credentials, and commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from skyward.plan.config.key_places import dotted
from skyward.plan.config.references import references

__all__ = ["fingerprint", "is_secret", "wishes"]

# Words in the name of a provider's setting, of whatever distribution: an address, something secret, something to run.
_WORDS = frozenset(
    "address api cmd command config credential credentials endpoint exec file home jump key keyfile keys password "
    "program proxy secret server token trust uri url".split()
)
_NAMES = frozenset({"known_hosts", "login"})
_SECRET = frozenset("credential credentials key keyfile keys password secret token".split())


def wishes(document: Mapping[str, Any]) -> tuple[str, ...]:
    """
    List the settings of a file that are taken only from one which the user trusts.

    Those are addresses of APIs, keys and files of keys, commands, files outside of the file's own folder, trust in the
    code of nodes, and all that the file reads from variables, other files and keyrings: a host's name could carry it
    away.

    Args:
        document: The file, as TOML was read.

    Returns:
        Each with its place; of what is secret, the name only.

    >>> wishes({"pools": {"train": {"provider": {"type": "DigitalOcean", "endpoint": "https://evil.example"}}}})
    ("pools.train.provider.endpoint = 'https://evil.example'",)
    >>> wishes({"pools": {"train": {"provider": {"type": "AWS", "region": "eu-west-1"}, "nodes": 2}}})
    ()
    """
    found: list[str] = []
    base = document.get("extends")
    if isinstance(base, str) and _elsewhere(base):
        found.append(f"extends = {base!r}")
    for kind, check in (("pools", _of_pool), ("images", _of_image)):
        for name, table in _tables(document, kind):
            found += check(f"{kind}.{name}", table)
    for kind in ("providers", "plugins", "metrics"):
        for name, table in _tables(document, kind):
            found += _settings(f"{kind}.{name}", table)
    found += _of_options("options", document.get("options"))
    found += [f"{dotted(at)} reads {one}" for at, one in references(dict(document))]
    return tuple(dict.fromkeys(found))


def is_secret(name: str) -> bool:
    """
    Return whether a setting of this name holds a secret.

    >>> is_secret("api_key"), is_secret("HF_TOKEN"), is_secret("region")
    (True, True, False)
    """
    return bool(set(re.split(r"[_-]", name.lower())) & _SECRET)


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
    for place, part in ((where, table), (f"{where}.options", table.get("options"))):
        if isinstance(part, Mapping) and isinstance(part.get("image"), Mapping):
            yield from _of_image(f"{place}.image", part["image"])
        yield from _of_options(place, part)


def _tables(document: Mapping[str, Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    shelf = document.get(kind)
    for name, table in shelf.items() if isinstance(shelf, Mapping) else ():
        if isinstance(table, Mapping):
            yield name, table


def _of_options(where: str, options: object) -> Iterator[str]:
    log = options.get("logging") if isinstance(options, Mapping) else None
    if isinstance(log, Mapping) and "file" in log:
        yield f"{where}.logging.file = {log['file']!r}"


def _of_image(where: str, image: Mapping[str, Any]) -> Iterator[str]:
    commands = image.get("shell_vars")
    if isinstance(commands, Mapping):
        yield from (f"{where}.shell_vars.{name} = {text!r}" for name, text in commands.items())
    included = image.get("includes")
    for path in included if isinstance(included, list) else [included]:
        if isinstance(path, str) and _elsewhere(path):
            yield f"{where}.includes = {path!r}"
    yield from _settings(f"{where}.metrics", image.get("metrics"))


def _elsewhere(path: str) -> bool:
    """Return whether a path leads out of the file's own folder."""
    return path.startswith(("/", "~")) or ".." in path.split("/")


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
            yield f"{where}.{name}" if is_secret(str(name)) else f"{where}.{name} = {value!r}"
        elif isinstance(value, str) and "://" in value:
            yield f"{where}.{name} = {value!r}"
        else:
            yield from _settings(f"{where}.{name}", value)
