"""What configuration files say together, as lines and as JSON, with the file that each value comes from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from skyward.plain import redacted
from skyward.plan.config.config_document import NAMED, Config
from skyward.plan.config.config_tree import ConfigNode
from skyward.plan.config.key_places import KeyPath, KeyPlace, dotted, key_places
from skyward.plan.config.pool_file_rules import is_secret
from skyward.plan.config.references import written

_HIDDEN = "***"


def lines(config: Config) -> Iterator[str]:
    """List tables and keys as TOML, each with its file and line."""
    places = _places(config)
    for at, table in _tables(config.root):
        yield f"[{dotted(at)}]"
        rows = [(f"{dotted((key,))} = {_toml(_shown(node, key))}", node) for key, node in table.value.items()]
        width = min(max((len(text) for text, _ in rows), default=0), 60)
        for text, node in rows:
            yield f"{text.ljust(width)}  # {node.file}:{places[node.file][node.at].line}"
        yield ""


def as_json(config: Config) -> dict[str, Any]:
    """Return all values, and the place of each by its key, as JSON can hold them."""
    places = _places(config)
    sources = {}
    for at, node in _leaves(config.root):
        place = places[node.file][node.at]
        sources[dotted(at)] = {"file": node.file, "line": place.line, "column": place.column}
    return {"files": list(config.texts), "config": _shown(config.root), "sources": sources}


def _places(config: Config) -> Mapping[str, Mapping[KeyPath, KeyPlace]]:
    return {file: key_places(text) for file, text in config.texts.items()}


def _tables(root: ConfigNode) -> Iterator[tuple[KeyPath, ConfigNode]]:
    for key, node in root.value.items():
        if key in NAMED:
            yield from (((key, name), table) for name, table in node.value.items())
        elif node.is_table:
            yield (key,), node


def _leaves(node: ConfigNode, at: KeyPath = ()) -> Iterator[tuple[KeyPath, ConfigNode]]:
    if node.is_table:
        for key, each in node.value.items():
            yield from _leaves(each, (*at, key))
    elif at != ("extends",):
        yield at, node


def _shown(node: ConfigNode, key: str = "") -> Any:
    """Return a value without secrets: a reference as it is written, the text of a key or variable not at all."""
    if isinstance(node.value, dict):
        # The text of variables may be secret, whatever their names are.
        return {name: _shown(each, "key" if key == "env" else name) for name, each in node.value.items()}
    if isinstance(node.value, list):
        return [_shown(each, key) for each in node.value]
    if isinstance(node.value, str):
        if "${" in node.value:
            return redacted(written(node.value))
        return _HIDDEN if is_secret(key) else redacted(node.value)
    # JSON has no infinity, and no times.
    if isinstance(node.value, (bool, int, float)) and math.isfinite(node.value):
        return _HIDDEN if is_secret(key) else node.value
    return str(node.value)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return (
            f"{{ {', '.join(f'{dotted((key,))} = {_toml(each)}' for key, each in value.items())} }}" if value else "{}"
        )
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, bool)) else str(value)
