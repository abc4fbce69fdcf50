"""
Pools that are described in `skyward.toml`.

    [pools.train]
    provider = { type = "Local" }
    accelerator = "H100:8"
    nodes = [2, 8]
    image = { pip = ["torch"] }
    selection = "first"
    worker = { concurrency = 4 }
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import attrs
from attrs import frozen

from skyward.errors import ConfigError, UsageError
from skyward.model.fields.setting import nearest
from skyward.model.spec.image import Image, PipIndex
from skyward.model.spec.nodes import Nodes
from skyward.model.spec.options import LogConfig, Options, Worker
from skyward.model.spec.volumes import Disk, Volume

__all__ = ["NamedPool", "load_named"]

T = TypeVar("T")
# Finds what makes a provider, or a plugin, by its name; raises ConfigError where there is none of that name.
FactoryOf = Callable[[str], Callable[..., Any]]

# Keys whose value may be a table, and what the table becomes.
_TABLES: dict[str, type[Any]] = {"image": Image, "worker": Worker, "logging": LogConfig, "nodes": Nodes}
# A list of tables, or one: a disk has a name, and a bucket has none.
_VOLUMES = ("volumes", "volume")
# Only Python can write these.
_NO_TOML = ("health_checker", "on_event")


@frozen(kw_only=True)
class NamedPool:
    """
    Hold what a configuration file says about one pool.

    Args:
        keywords: What would be written as keywords of `sky.Compute`.
        where: File and table, for errors.
    """

    keywords: Mapping[str, Any]
    where: str


def load_named(
    name: str,
    toml_text: str,
    *,
    provider_of: FactoryOf,
    plugin_of: FactoryOf | None = None,
    file: str = "skyward.toml",
) -> NamedPool:
    """
    Return what a text in TOML says about the pool of a name.

    Args:
        name: Name of the pool; its table is `[pools.NAME]`.
        toml_text: The whole text.
        provider_of: Called with the name of a provider, such as `"local"`; returns what makes one.
        plugin_of: The same for plugins; where it is not given, the file cannot name any.
        file: Where the text comes from, for errors.

    Raises:
        ConfigError: If the text is no TOML, there is no such pool, or a table in it cannot be understood.

    >>> load_named("train", '[pools.train]\\nnodes = [2, 8]', provider_of=lambda name: dict).keywords
    {'nodes': [2, 8]}
    """
    where = f"[pools.{name}] in {file}"
    table = _table(name, toml_text, file)
    try:
        return NamedPool(keywords=_keywords(table, provider_of, plugin_of), where=where)
    except ConfigError as error:
        raise type(error)(f"{where}: {error.message}", hint=error.hint) from error


def pool_names(toml_text: str, file: str = "skyward.toml") -> tuple[str, ...]:
    """
    Return the names of the pools that a text in TOML describes.

    Args:
        toml_text: The whole text.
        file: Where the text comes from, for errors.

    Raises:
        ConfigError: If the text is no TOML, or its pools are no table.

    >>> pool_names("[pools.train]\\nnodes = 2")
    ('train',)
    """
    return tuple(_pools(toml_text, file))


def _pools(toml_text: str, file: str) -> dict[str, Any]:
    """Return the tables of all pools."""
    # Late, because few programs have named pools.
    import tomllib

    try:
        document = tomllib.loads(toml_text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is no TOML: {error}.") from error
    pools = document.get("pools", {})
    if not isinstance(pools, dict):
        raise ConfigError(f"pools in {file} must be a table.", hint="Write [pools.NAME].")
    return pools


def _table(name: str, toml_text: str, file: str) -> dict[str, Any]:
    """Return the table of a pool."""
    pools = _pools(toml_text, file)
    if name not in pools:
        close = nearest(name, pools)
        known = f"It has {', '.join(pools)}." if pools else "It has none."
        raise ConfigError(f"{file} has no pool {name!r}.", hint=f"Did you mean {close!r}? {known}" if close else known)
    table: object = pools[name]
    if not isinstance(table, dict):
        raise ConfigError(f"pools.{name} in {file} must be a table, not {table!r}.", hint=f"Write [pools.{name}].")
    return table


def _keywords(table: Mapping[str, Any], provider_of: FactoryOf, plugin_of: FactoryOf | None) -> dict[str, Any]:
    """Return a pool's table as keywords."""
    keywords = {}
    for key, value in _flat(table).items():
        if key in _NO_TOML:
            raise UsageError(f"{key} is a function and can only be given in Python.")
        if key == "provider":
            keywords[key] = _each(value, provider_of, "provider")
        elif key == "plugins":
            if plugin_of is None:
                raise UsageError("plugins can only be given in Python.")
            entries = value if isinstance(value, list) else [value]
            keywords[key] = [_made(entry, plugin_of, "plugins") for entry in entries]
        elif key in _VOLUMES:
            entries = value if isinstance(value, list) else [value]
            keywords[key] = [_volume(entry, key) for entry in entries]
        elif key in _TABLES and isinstance(value, dict):
            keywords[key] = _constructed(_TABLES[key], value, key)
        else:
            keywords[key] = value
    return keywords


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a pool's table with what its table of options holds moved up."""
    options = table.get("options", {})
    if not isinstance(options, dict):
        raise ConfigError(f"options must be a table, not {options!r}.")
    _known(options, [field.name for field in attrs.fields(Options)], "options")
    above = {key: value for key, value in table.items() if key != "options"}
    twice = sorted(above.keys() & options.keys())
    if twice:
        raise UsageError(f"{twice[0]} is given twice, once in options.")
    return {**above, **options}


def _each(value: object, factory_of: FactoryOf, key: str) -> Any:
    """Return what one entry, or each of a list, stands for."""
    return (
        [_made(entry, factory_of, key) for entry in value] if isinstance(value, list) else _made(value, factory_of, key)
    )


def _made(entry: object, factory_of: FactoryOf, key: str) -> Any:
    """Return what a name, or a table with a type and settings, stands for."""
    settings = dict(entry) if isinstance(entry, dict) else {"type": entry}
    kind = settings.pop("type", None)
    if not isinstance(kind, str):
        # Without the values, for one of them may be a secret.
        shown = f"a table of {', '.join(settings)}" if isinstance(entry, dict) else repr(entry)
        raise ConfigError(
            f"{key} must be a name or a table with a type, not {shown}.", hint=f'Write {key} = {{ type = "..." }}.'
        )
    try:
        factory = factory_of(kind)
    except ConfigError as error:
        # Python names it sky.SSH, and this file "SSH".
        meant = re.fullmatch(r"Did you mean sky\.(?:plugins\.)?(.+)\?", error.hint or "")
        raise type(error)(error.message, hint=f'Did you mean "{meant[1]}"?' if meant else error.hint) from error
    try:
        return factory(**settings)
    except ConfigError as error:
        raise type(error)(f"{key} of type {kind!r}: {error.message}", hint=error.hint) from error
    except TypeError as error:
        # What Python says of a wrong keyword names it; only the place in the file is missing.
        raise ConfigError(f"{key} of type {kind!r}: {error}") from error


def _volume(entry: object, key: str) -> object:
    """Return a table as the bucket or disk that it stands for; what is no table is left for its own error."""
    if not isinstance(entry, dict):
        return entry
    return _constructed(Disk if "name" in entry else Volume, entry, key)


def _constructed(kind: type[T], table: Mapping[str, Any], key: str) -> T:
    """Return a table as the value it stands for."""
    _known(table, [field.name for field in attrs.fields(kind)], key)  # type: ignore[arg-type]
    settings = dict(table)
    indexes = settings.get("pip_indexes") if kind is Image else None
    if isinstance(indexes, list):
        settings["pip_indexes"] = [
            _constructed(PipIndex, index, "pip_indexes") if isinstance(index, dict) else index for index in indexes
        ]
    missing = [field.name for field in attrs.fields(kind) if field.default is attrs.NOTHING and field.name not in table]  # type: ignore[arg-type]
    if missing:
        raise ConfigError(f"{key} must have {' and '.join(missing)}.")
    try:
        return kind(**settings)
    except ConfigError as error:
        raise ConfigError(f"{key}: {error.message}", hint=error.hint) from error


def _known(table: Mapping[str, Any], names: Iterable[str], key: str) -> None:
    """Refuse a key that is none of the names."""
    names = list(names)
    for wrong in table:
        if wrong not in names:
            close = nearest(wrong, names)
            raise UsageError(
                f"{key} has no setting {wrong!r}.",
                hint=f"Did you mean {close!r}?" if close else f"It has {', '.join(names)}.",
            )
