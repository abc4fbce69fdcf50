"""All that is wrong in configuration files, whatever is opened of it."""

from __future__ import annotations

from typing import Any

from skyward.errors import ConfigError
from skyward.plan.config.config_document import Config
from skyward.plan.config.config_tree import ConfigNode, Problem, place_of
from skyward.plan.config.named_pools import pool_keywords
from skyward.plan.config.request import NamedPool, request
from skyward.plan.config.table_values import FactoryOf, LookUp, TableReading

__all__ = ["problems_of"]


def problems_of(
    config: Config, *, provider_of: FactoryOf, plugin_of: FactoryOf | None = None, look_up: LookUp
) -> list[Problem]:
    """
    Return all that is wrong in configuration files, in the order of their lines.

    Args:
        config: The files.
        provider_of: Called with the name of a provider; returns what makes one.
        plugin_of: The same for plugins.
        look_up: Called with a reference and the file it is in; returns what it refers to.
    """
    reading = TableReading(config.root, provider_of, plugin_of, look_up)
    makers = {"providers": reading.provider, "plugins": reading.plugin, "images": reading.image}
    for kind, make in {**makers, "metrics": reading.metric}.items():
        for node in config.tables(kind).values():
            make(node)
    if (options := config.root.get("options")) is not None:
        # As a pool that has nothing else.
        pool_keywords(ConfigNode({}, options.file, options.at), reading)
    for name, pool in config.pools.items():
        before = len(reading.problems)
        keywords = pool_keywords(pool, reading)
        if len(reading.problems) == before:
            _check_together(name, pool, keywords, reading)
    files = list(config.texts)
    found = [*config.problems, *reading.problems]
    return sorted(found, key=lambda each: (files.index(each.file), place_of(each, config.texts)))


def _check_together(name: str, pool: ConfigNode, keywords: dict[str, Any], reading: TableReading) -> None:
    """Refuse settings of a pool that exclude each other."""
    try:
        request(name=name, named=lambda _: NamedPool(keywords=keywords, where=""))
    except ConfigError as error:
        reading.refuse(pool, type(error)(error.message.removeprefix(": "), hint=error.hint))
