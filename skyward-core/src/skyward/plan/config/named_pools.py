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

from collections.abc import Mapping
from typing import Any, get_type_hints

import attrs
from attrs import frozen

from skyward.errors import ConfigError, UsageError
from skyward.model.fields.keywords import PoolKeywords
from skyward.model.fields.setting import known_only, nearest
from skyward.model.spec.image import Image
from skyward.model.spec.options import Options, Worker
from skyward.plan.config.config_document import Config, Layer, config_of
from skyward.plan.config.config_tree import ConfigNode, Problem, merged, parsed, place_of, refusal
from skyward.plan.config.key_places import dotted
from skyward.plan.config.keyword_checks import ALIASES, check_keyword, known_keywords
from skyward.plan.config.request import NamedPool
from skyward.plan.config.table_values import TABLES, FactoryOf, LookUp, TableReading

__all__ = ["ONLY_PYTHON", "NamedPool", "load_named", "pool_keywords", "pool_names", "providers_named"]

ONLY_PYTHON = ("health_checker", "on_event")
"""Keywords that TOML cannot write."""

# A list of tables, or one: a disk has a name, and a bucket has none.
_VOLUMES = ("volumes", "volume")


@frozen
class _Where:
    """Find where a table is written once an error is printed."""

    node: ConfigNode
    texts: Mapping[str, str]

    def __str__(self) -> str:
        place = place_of(Problem(self.node.file, self.node.at, ""), self.texts)
        return f"{self.node.file}:{place.line}:{place.column}: {dotted(self.node.at)}"


def load_named(
    name: str,
    config: Config,
    *,
    provider_of: FactoryOf,
    plugin_of: FactoryOf | None = None,
    look_up: LookUp,
) -> NamedPool:
    """
    Return what configuration files say about the pool of a name.

    Args:
        name: Name of the pool; its table is `[pools.NAME]`.
        config: The files.
        provider_of: Called with the name of a provider, such as `"Local"`; returns what makes one.
        plugin_of: The same for plugins; where it is not given, the file cannot name any.
        look_up: Called with a reference and the file it is in; returns what it refers to.

    Raises:
        ConfigError: If there is no such pool, or its table, or one that it names, cannot be understood; all that is
            wrong is named, each with file, line, column and key.
    """
    if config.problems:
        raise refusal(list(config.problems), config.texts)
    if name not in config.pools:
        close = nearest(name, config.pools)
        known = f"It has {', '.join(config.pools)}." if config.pools else "It has none."
        raise ConfigError(
            f"{' with '.join(config.texts)} has no pool {name!r}.",
            hint=f"Did you mean {close!r}? {known}" if close else known,
        )
    reading = TableReading(config.root, provider_of, plugin_of, look_up)
    pool = config.pools[name]
    keywords = pool_keywords(pool, reading)
    if reading.problems:
        raise refusal(reading.problems, config.texts)
    return NamedPool(keywords=keywords, where=_Where(pool, config.texts), secrets=dict(reading.secrets))


def pool_names(toml_text: str, file: str = "skyward.toml") -> tuple[str, ...]:
    """
    Return the names of the pools that a text in TOML describes, whatever else is in it.

    Args:
        toml_text: The whole text.
        file: Where the text comes from, for errors.

    Raises:
        ConfigError: If the text is no TOML.

    >>> pool_names("[pools.train]\\nnodes = 2")
    ('train',)
    """
    return tuple(config_of([Layer(file, toml_text, parsed(toml_text, file))]).pools)


def providers_named(
    config: Config, *, provider_of: FactoryOf, plugin_of: FactoryOf | None = None, look_up: LookUp
) -> list[Any]:
    """
    Return the providers that configuration files name, in pools and by themselves; nothing else of them is read.

    Args:
        config: The files.
        provider_of: As of `load_named`.
        plugin_of: As of `load_named`.
        look_up: As of `load_named`.

    Raises:
        ConfigError: If one cannot be made.
    """
    reading = TableReading(config.root, provider_of, plugin_of, look_up)
    found: list[Any] = []
    nodes = [provider for pool in config.pools.values() if (provider := pool.get("provider")) is not None]
    for node in (*nodes, *config.tables("providers").values()):
        given = reading.each(node, reading.provider)
        found += given if isinstance(given, list) else [given]
    if config.problems or reading.problems:
        raise refusal([*config.problems, *reading.problems], config.texts)
    return found


def pool_keywords(pool: ConfigNode, reading: TableReading) -> dict[str, Any]:
    """
    Return a pool's table as keywords; what is wrong is left with the reading.

    Args:
        pool: The table.
        reading: What makes values of tables.
    """
    keywords = {}
    for key, node in _settings(pool, reading).items():
        before = len(reading.problems)
        try:
            _known(key)
            value = _keyword(key, node, reading)
            if len(reading.problems) == before and value is not None:
                check_keyword(key, value)
        except ConfigError as error:
            reading.refuse(node, error)
        else:
            keywords[key] = value
    return keywords


def _known(key: str) -> None:
    """Refuse a keyword that there is not, or not in a file."""
    if key in ONLY_PYTHON:
        raise UsageError(f"{key} is a function and can only be given in Python.")
    known = known_keywords()
    if key not in known and key in {field.name for field in attrs.fields(Image)}:
        raise UsageError(f"a pool has no setting {key!r}.", hint=f"It belongs to the image: image = {{ {key} = ... }}.")
    known_only((key,), [each for each in known if each not in ONLY_PYTHON], "a pool")


def _keyword(key: str, node: ConfigNode, reading: TableReading) -> Any:
    """Return the value of a keyword."""
    if key == "provider":
        return reading.each(node, reading.provider)
    if key == "plugins":
        made = reading.each(node, reading.plugin)
        return made if isinstance(made, list) else [made]
    if key in _VOLUMES:
        made = reading.each(node, reading.volume)
        return made if isinstance(made, list) else [made]
    if key == "image":
        return reading.image(node)
    if key in TABLES and node.is_table:
        return reading.constructed(TABLES[key], node, key)
    hint = get_type_hints(PoolKeywords)[key] if isinstance(node.value, str) and "${" in node.value else Any
    return reading.filled(node, hint)


def _settings(pool: ConfigNode, reading: TableReading) -> dict[str, ConfigNode]:
    """Return a pool's settings, with those of its table of options, and below them the options of all pools."""
    own = dict(pool.without("options").value)
    for key, node in _options(pool.get("options"), reading).items():
        if key in own:
            reading.refuse(node, UsageError(f"{key} is given twice, once in options."))
        own[key] = node
    shared = _options(reading.document.get("options"), reading)
    workers = {field.name for field in attrs.fields(Worker)}
    if workers & own.keys() and "worker" in shared and shared["worker"].is_table:
        shared |= shared.pop("worker").value
    written = {ALIASES.get(key, key) for key in own}
    below = {key: node for key, node in shared.items() if key in own or key not in written}
    return {**below, **{key: merged(node, below[key]) if key in below else node for key, node in own.items()}}


def _options(node: ConfigNode | None, reading: TableReading) -> dict[str, ConfigNode]:
    """Return what a table of options says."""
    if node is None:
        return {}
    if not node.is_table:
        reading.refuse(node, ConfigError(f"options must be a table, not {node.value!r}."))
        return {}
    known: dict[str, ConfigNode] = reading.known(node, [field.name for field in attrs.fields(Options)], "options").value
    return known
