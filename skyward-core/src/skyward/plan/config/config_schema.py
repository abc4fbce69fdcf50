"""
The JSON schema of `skyward.toml`, for editors: made from the classes that its tables become.

What a class says in words or code only, such as which regions there are, is left to the reader of the file.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

from skyward.model.fields.keywords import PoolKeywords
from skyward.model.spec.image import Image
from skyward.model.spec.options import Options, Worker
from skyward.model.spec.spec import Spec
from skyward.model.spec.volumes import Disk, Volume
from skyward.plan.config.field_types import accepted, required
from skyward.plan.config.named_pools import ONLY_PYTHON
from skyward.plan.config.table_values import TABLES, metric_names, metric_of

__all__ = ["config_schema"]

_TEXT = {"type": "string"}
_REFERENCE = {"$ref": "#/definitions/reference"}
_SCALARS = {int: "integer", float: "number", bool: "boolean"}
_LISTS = (list, tuple, set, frozenset, Iterable, Sequence)


def config_schema(
    providers: Mapping[str, Callable[..., Any]], plugins: Mapping[str, Callable[..., Any]]
) -> dict[str, Any]:
    """
    Return the schema, as of draft 7, which editors of TOML know.

    Args:
        providers: What makes providers, by name.
        plugins: What makes plugins, by name.

    >>> schema = config_schema({}, {})
    >>> schema["definitions"]["pool"]["properties"]["nodes"]["anyOf"][0]
    {'type': 'integer'}
    """
    metrics = {name: metric_of(name) for name in metric_names()}
    options = [field.name for field in attrs.fields(Options)]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "skyward.toml",
        **_closed(
            {
                "extends": {**_TEXT, "description": "The path of a file that this one adds to."},
                "providers": _by_name({"$ref": "#/definitions/provider"}),
                "images": _by_name({"$ref": "#/definitions/image"}),
                "plugins": _by_name({"$ref": "#/definitions/plugin"}),
                "metrics": _by_name({"$ref": "#/definitions/metric"}),
                "pools": _by_name({"$ref": "#/definitions/pool"}),
                "options": {"$ref": "#/definitions/options"},
            }
        ),
        "definitions": {
            "reference": {**_TEXT, "pattern": r"\$\{[^{}]+\}"},
            "provider": _typed(providers),
            "plugin": _typed(plugins),
            "metric": _typed(metrics),
            "image": _image(),
            "pool": _pool(),
            "options": _closed({name: each for name, each in _pool()["properties"].items() if name in options}),
        },
    }


def _pool() -> dict[str, Any]:
    said = {name: text for kind in (Worker, Options, Spec) for name, text in _descriptions(kind).items()}
    hints = {name: hint for name, hint in get_type_hints(PoolKeywords).items() if name not in ONLY_PYTHON}
    named = {name: _name_or({"$ref": f"#/definitions/{name}"}) for name in ("provider", "image")}
    plugin, volume = _name_or({"$ref": "#/definitions/plugin"}), {"anyOf": [_table(Volume), _table(Disk)]}
    own = {
        "image": named["image"],
        "provider": _one_or_several(named["provider"]),
        "plugins": _one_or_several(plugin),
        "volumes": _one_or_several(volume),
        "volume": _one_or_several(volume),
        "options": {"$ref": "#/definitions/options"},
        "extends": {**_TEXT, "description": "The name of a pool that this one adds to."},
    }
    properties = {name: _json(hint) for name, hint in hints.items()} | own
    return _closed({name: _described(each, said.get(name)) for name, each in properties.items()})


def _image() -> dict[str, Any]:
    image = _table(Image)
    image["properties"] |= {
        "metrics": {"type": "array", "items": _name_or({"$ref": "#/definitions/metric"})},
        "extends": {**_TEXT, "description": "The name of an image that this one adds to."},
    }
    return image


def _table(kind: type[Any]) -> dict[str, Any]:
    """Return the schema of a table that becomes a value of a class."""
    said = _descriptions(kind)
    properties = {name: _described(_json(hint), said.get(name)) for name, hint in accepted(kind).items()}
    needed = list(required(kind))
    return _closed(properties) | ({"required": needed} if needed else {})


def _typed(makers: Mapping[str, Callable[..., Any]]) -> dict[str, Any]:
    """Return the schema of a table with a type, whose other settings are those of the type."""
    kinds = []
    for name, make in sorted(makers.items()):
        said = _descriptions(make)
        own = {key: _described(_json(hint), said.get(key)) for key, hint in accepted(make).items()}
        whole = _closed({"type": {"const": name}, "extends": _TEXT, **own})
        kinds.append({"if": {"properties": {"type": {"const": name}}, "required": ["type"]}, "then": whole})
    words = {"anyOf": [{"enum": sorted(makers)}, _TEXT]} if makers else _TEXT
    schema: dict[str, Any] = {"type": "object", "properties": {"type": words, "extends": _TEXT}}
    return schema | ({"allOf": kinds} if kinds else {})


def _json(hint: Any) -> dict[str, Any]:
    """Return the schema of what a type accepts; of one that TOML cannot write, or that says nothing, anything."""
    found = [each for each in _kinds(hint) if each is not None]
    if not found or {} in found:
        return {}
    kinds = {each.get("type") for each in found}
    if "string" not in kinds and kinds & set(_SCALARS.values()):
        found.append(_REFERENCE)
    once = [each for index, each in enumerate(found) if each not in found[:index]]
    return once[0] if len(once) == 1 else {"anyOf": once}


def _kinds(hint: Any) -> Iterable[dict[str, Any] | None]:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        for each in inner:
            yield from _kinds(each)
    elif origin is Literal:
        yield {"enum": [word for word in inner if word is not None]}
        # Most words may be spelled in other ways, too.
        yield _TEXT if any(isinstance(word, str) for word in inner) else None
    elif hint in _SCALARS:
        yield {"type": _SCALARS[hint]}
    elif hint is str or origin is PathLike or hint is PathLike:
        yield _TEXT
    elif hint in TABLES.values():
        yield _table(hint)
    elif (origin or hint) in _LISTS:
        yield _list(origin, inner)
    elif isinstance(origin or hint, type) and issubclass(origin or hint, Mapping):
        yield {"type": "object"}
    else:
        # None and values of classes cannot be written; a type that says nothing accepts anything.
        yield {} if hint in (Any, object, inspect.Parameter.empty) else None


def _list(origin: Any, inner: tuple[Any, ...]) -> dict[str, Any]:
    if origin is tuple and inner and inner[-1] is not ...:
        schemas = [_json(each) for each in inner]
        same = all(each == schemas[0] for each in schemas)
        return {
            "type": "array",
            "minItems": len(inner),
            "maxItems": len(inner),
            **({"items": schemas[0]} if same else {}),
        }
    return {"type": "array", **({"items": _json(inner[0])} if inner else {})}


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _by_name(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": schema}


def _name_or(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [_TEXT, schema]}


def _one_or_several(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def _described(schema: dict[str, Any], text: str | None) -> dict[str, Any]:
    # Beside a reference to another schema nothing else is read.
    return {"description": text, **schema} if text and "$ref" not in schema else schema


def _descriptions(kind: Callable[..., Any]) -> dict[str, str]:
    """Return what a docstring says of each argument."""
    lines = inspect.getdoc(kind) or ""
    section = re.search(r"^Args:\n((?:(?: .*)?\n)+)", f"{lines}\n", re.MULTILINE)
    entries = re.split(r"^    (?=\w+: )", section[1], flags=re.MULTILINE) if section else []
    pairs = (entry.partition(": ") for entry in entries if entry.strip())
    return {name: " ".join(text.split()) for name, _, text in pairs}
