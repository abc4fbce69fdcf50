"""
Tables of a configuration file as the values they stand for, with all that is wrong in them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import define, field

from skyward.errors import ConfigError, UsageError
from skyward.model.events import metric
from skyward.model.fields.setting import nearest
from skyward.model.spec.image import Image, PipIndex
from skyward.model.spec.nodes import Nodes
from skyward.model.spec.options import LogConfig, Worker
from skyward.model.spec.volumes import Disk, Volume
from skyward.plan.config.config_tree import ConfigNode, Problem, merged, plain
from skyward.plan.config.field_types import accepted, parsed_as, required
from skyward.plan.config.references import FOR_A_SHELL, Reference, filled_in, hidden

__all__ = ["TABLES", "FactoryOf", "LookUp", "TableReading"]

# Finds what makes a provider, or a plugin, by its name; raises ConfigError where there is none of that name.
FactoryOf = Callable[[str], Callable[..., Any]]
# Returns what a reference of a file refers to; raises ConfigError where it leads nowhere.
LookUp = Callable[[Reference, str], str]

TABLES: dict[str, type[Any]] = {"image": Image, "worker": Worker, "logging": LogConfig, "nodes": Nodes}
"""Keys whose value may be a table, and what the table becomes."""


@define
class TableReading:
    """
    Make values of tables; what is wrong is collected, so that all of it can be reported at once.

    Args:
        document: The tables that others may name: `providers`, `images`, `plugins`, `metrics`.
        provider_of: Called with the name of a provider; returns what makes one.
        plugin_of: The same for plugins; None where none can be named.
        look_up: Called with each reference and the file that it is in; returns the text.
    """

    document: ConfigNode
    provider_of: FactoryOf
    plugin_of: FactoryOf | None
    look_up: LookUp
    problems: list[Problem] = field(factory=list)
    secrets: dict[str, str] = field(factory=dict)
    _of: dict[str, list[ConfigNode]] = field(factory=dict)

    def refuse(self, node: ConfigNode, error: ConfigError) -> None:
        """Record what is wrong with a value, without any secret."""
        secrets = {text: name for text, name in self.secrets.items() if len(text) > 3 or self._is_of(text, node)}
        message, hint = hidden(error.message, secrets), hidden(error.hint, secrets)
        problem = Problem(node.file, node.at, message, hint, type(error))
        if problem not in self.problems:
            self.problems.append(problem)

    def _is_of(self, secret: str, node: ConfigNode) -> bool:
        """Return whether a secret stands for a value, or for one in it; a short one may be a part of any other."""
        return any((one.file, one.at[: len(node.at)]) == (node.file, node.at) for one in self._of[secret])

    def filled(self, node: ConfigNode, hint: Any = Any) -> Any:
        """Return a value with its references looked up; None in the place of one that leads nowhere."""
        if isinstance(node.value, dict):
            return {key: plain(each) if key in FOR_A_SHELL else self.filled(each) for key, each in node.value.items()}
        if isinstance(node.value, list):
            return [self.filled(each) for each in node.value]
        if not isinstance(node.value, str) or "$" not in node.value:
            return node.value
        try:
            text, secrets = filled_in(node.value, lambda reference: self.look_up(reference, node.file))
        except ConfigError as error:
            self.refuse(node, error)
            return None
        self.secrets |= secrets
        for secret in secrets:
            self._of.setdefault(secret, []).append(node)
        return parsed_as(text, hint) if "${" in node.value else text

    def _settings(self, table: Mapping[str, ConfigNode], types: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of a table, without those that have a reference which leads nowhere."""
        settings = {}
        for key, node in table.items():
            before = len(self.problems)
            value = plain(node) if key in FOR_A_SHELL else self.filled(node, types.get(key, Any))
            if len(self.problems) == before:
                settings[key] = value
        return settings

    def known(self, node: ConfigNode, names: Iterable[str], what: str) -> ConfigNode:
        """Return a table without the keys that are none of the names, each of which is refused."""
        names = list(names)
        for wrong in [key for key in node.value if key not in names]:
            close = nearest(wrong, names)
            hint = f"Did you mean {close!r}?" if close else f"It has {', '.join(names)}."
            self.refuse(node.value[wrong], UsageError(f"{what} has no setting {wrong!r}.", hint=hint))
            node = node.without(wrong)
        return node

    def constructed(self, kind: type[Any], node: ConfigNode, what: str, given: Mapping[str, Any] | None = None) -> Any:
        """Return a table as a value of a class; None where it cannot be one."""
        before = len(self.problems)
        types = accepted(kind)
        node = self.known(node, types, what)
        missing = [name for name in required(kind) if name not in node.value]
        if missing:
            self.refuse(node, ConfigError(f"{what} must have {' and '.join(missing)}."))
        own = {key: each for key, each in node.value.items() if key not in (given or {})}
        settings = self._settings(own, types) | dict(given or {})
        made = None if missing else self.called(kind, node, settings, what)
        return made if len(self.problems) == before else None

    def called(self, factory: Callable[..., Any], node: ConfigNode, settings: dict[str, Any], what: str) -> Any:
        """Return what a factory makes of settings; of several that are wrong each is refused at its key."""
        settings = dict(settings)
        first = True
        while True:
            try:
                return factory(**settings)
            except ConfigError as error:
                refused: ConfigError = type(error)(f"{what}: {error.message}", hint=error.hint)
            except TypeError as error:
                # What Python says of a wrong keyword names it; only the place in the file is missing.
                refused = ConfigError(f"{what}: {error}")
            culprit = _culprit(refused.message.removeprefix(f"{what}: "), settings)
            if culprit is None:
                if first:
                    self.refuse(node, refused)
                return None
            self.refuse(node.get(culprit) or node, refused)
            del settings[culprit]
            first = False

    def each(self, node: ConfigNode, make: Callable[[ConfigNode], Any]) -> Any:
        """Return what one entry, or each of a list, stands for."""
        if isinstance(node.value, list):
            return [made for made in map(make, node.value) if made is not None]
        return make(node)

    def provider(self, node: ConfigNode) -> Any:
        """Return the provider that a name or a table stands for."""
        return self._made(node, "provider", "providers", self.provider_of)

    def plugin(self, node: ConfigNode) -> Any:
        """Return the plugin that a name or a table stands for."""
        if self.plugin_of is None:
            self.refuse(node, UsageError("plugins can only be given in Python."))
            return None
        return self._made(node, "plugins", "plugins", self.plugin_of)

    def _made(self, node: ConfigNode, key: str, tables: str, factory_of: FactoryOf) -> Any:
        node = self._named(node, tables)
        table = node if node.is_table else ConfigNode({"type": node}, node.file, node.at)
        named = table.get("type")
        kind = self.filled(named) if named is not None else None
        if not isinstance(kind, str):
            # Without the values, for one of them may be a secret.
            shown = f"a table of {', '.join(table.value)}" if node.is_table else repr(node.value)
            message = f"{key} must be a name or a table with a type, not {shown}."
            self.refuse(node, ConfigError(message, hint=f'Write {key} = {{ type = "..." }}.'))
            return None
        try:
            factory = factory_of(kind)
        except ConfigError as error:
            # Python names it sky.SSH, and this file "SSH".
            meant = re.fullmatch(r"Did you mean sky\.(?:plugins\.)?(.+)\?", error.hint or "")
            hint = f'Did you mean "{meant[1]}"?' if meant else error.hint
            self.refuse(named or node, type(error)(error.message, hint=hint))
            return None
        before = len(self.problems)
        settings = self._settings(table.without("type").value, accepted(factory))
        if len(self.problems) > before:
            return None
        return self.called(factory, table, settings, f"{key} of type {kind!r}")

    def _named(self, node: ConfigNode, tables: str) -> ConfigNode:
        """Return the table of the document that a name, or a table's `extends`, stands for; else the value itself."""
        shelf = self.document.get(tables)
        names = shelf.value if shelf is not None and shelf.is_table else {}
        base = node.get("extends") if node.is_table else node
        if base is None:
            return node
        name = self.filled(base) if isinstance(base.value, str) else base.value
        if not isinstance(name, str) or name not in names:
            if node.is_table:
                close = nearest(name, names)
                hint = f"Did you mean {close!r}?" if close else f"Write [{tables}.{name}]."
                self.refuse(base, ConfigError(f"There is no [{tables}.{name}] to extend.", hint=hint))
                return node.without("extends")
            return ConfigNode(name, node.file, node.at)
        found: ConfigNode = names[name]
        return merged(node.without("extends"), found) if node.is_table else found

    def image(self, node: ConfigNode) -> Any:
        """Return the image that a name or a table stands for; what is neither is left for its own error."""
        found = self._named(node, "images")
        if not found.is_table:
            if isinstance(found.value, str):
                shelf = self.document.get("images")
                close = nearest(found.value, shelf.value if shelf is not None else ())
                hint = f"Did you mean {close!r}?" if close else f"Write [images.{found.value}]."
                self.refuse(found, ConfigError(f"There is no image {found.value!r}.", hint=hint))
                return None
            return found.value
        given: dict[str, Any] = {}
        indexes, metrics = found.get("pip_indexes"), found.get("metrics")
        if indexes is not None and isinstance(indexes.value, list):
            given["pip_indexes"] = [
                self.constructed(PipIndex, each, "pip_indexes") if each.is_table else each.value
                for each in indexes.value
            ]
            given["pip_indexes"] = [each for each in given["pip_indexes"] if each is not None]
        if metrics is not None and isinstance(metrics.value, list):
            given["metrics"] = [collector for each in metrics.value for collector in self.metric(each)]
        return self.constructed(Image, found, "image", given)

    def metric(self, node: ConfigNode) -> tuple[metric.Collector, ...]:
        """Return the metrics that a name or a table stands for."""
        made = self._made(node, "metrics", "metrics", metric_of)
        return made if isinstance(made, tuple) else () if made is None else (made,)

    def volume(self, node: ConfigNode) -> Any:
        """Return the bucket or disk that a table stands for; what is no table is left for its own error."""
        if not node.is_table:
            return self.filled(node)
        return self.constructed(Disk if "name" in node.value else Volume, node, "volumes")


def metric_of(name: str) -> Callable[..., Any]:
    """
    Return what makes a metric.

    Args:
        name: As it is written after `sky.metrics.`.

    Raises:
        ConfigError: If there is none of this name; the nearest is offered.

    >>> metric_of("CPU")().name
    'cpu_percent'
    """
    known = metric_names()
    if name not in known:
        close = nearest(name, known)
        hint = f'Did you mean "{close}"?' if close else f"There are {', '.join(known)}."
        raise ConfigError(f"There is no metric {name!r}.", hint=hint)
    made: Callable[..., Any] = getattr(metric, name)
    return made


def metric_names() -> tuple[str, ...]:
    """
    Return the names of the metrics there are.

    >>> "GPUMemory" in metric_names(), "Collector" in metric_names()
    (True, False)
    """
    return tuple(name for name in metric.__all__ if name not in ("Collector", "Source"))


def _culprit(message: str, settings: Mapping[str, Any]) -> str | None:
    """Return the setting that an error is about: the one that its sentence begins with, or that it calls unknown."""
    found = re.match(r"\w+", message)
    if found and found[0] in settings:
        return found[0]
    quoted = re.search(r"(?:no setting|keyword argument) '(\w+)'", message)
    return quoted[1] if quoted and quoted[1] in settings else None
