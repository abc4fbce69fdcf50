"""
Types of what may be written for a setting, read from the classes themselves: for texts of variables, and for editors.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import attrs

__all__ = ["accepted", "parsed_as", "required"]


def accepted(kind: Callable[..., Any]) -> dict[str, Any]:
    """
    Return the types that each keyword of a class or function accepts; `Any` where it does not say.

    Args:
        kind: Such as the class of a provider.

    >>> from skyward.model.spec.worker_layout import Worker
    >>> accepted(Worker)["concurrency"]
    <class 'int'>
    """
    if not (isinstance(kind, type) and attrs.has(kind)):
        return {name: hint for name, hint in _hints(kind, _parameters(kind)).items() if name != "return"}
    fields = [field for field in attrs.fields(kind) if field.init]
    hints = _hints(kind, [field.name for field in fields])
    return {field.alias or field.name: _input(field, hints[field.name]) for field in fields}


def required(kind: Callable[..., Any]) -> tuple[str, ...]:
    """
    Return the keywords without which a class or function cannot be called.

    >>> from skyward.model.fields.pip_index import PipIndex
    >>> required(PipIndex)
    ('url', 'packages')
    """
    if isinstance(kind, type) and attrs.has(kind):
        return tuple(
            each.alias or each.name for each in attrs.fields(kind) if each.init and each.default is attrs.NOTHING
        )
    try:
        signature = inspect.signature(kind)
    except (TypeError, ValueError):
        return ()
    usual = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(name for name, one in signature.parameters.items() if one.default is one.empty and one.kind in usual)


def parsed_as(text: str, hint: Any) -> Any:
    """
    Return the number or switch that a variable's text stands for, where a setting takes no text.

    Args:
        text: The text.
        hint: The type that the setting accepts.

    >>> parsed_as("4", int | None), parsed_as("4", str)
    (4, '4')
    """
    if _takes_text(hint):
        return text
    import tomllib

    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _takes_text(hint: Any) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return any(map(_takes_text, get_args(hint)))
    if get_origin(hint) is Literal:
        return any(isinstance(word, str) for word in get_args(hint))
    return hint in (Any, object, str, inspect.Parameter.empty) or not (
        hint in (int, float, bool, type(None)) or get_origin(hint) is not None or isinstance(hint, type)
    )


def _parameters(kind: Callable[..., Any]) -> list[str]:
    try:
        signature = inspect.signature(kind)
    except (TypeError, ValueError):
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name, one in signature.parameters.items() if one.kind not in variable]


def _hints(kind: Any, names: Iterable[str]) -> Mapping[str, Any]:
    """Return the types of names; `Any` for all where one of them cannot be resolved, such as one for checkers only."""
    try:
        known = get_type_hints(kind)
    except (AttributeError, NameError, TypeError):
        known = {}
    return {name: known.get(name, Any) for name in names}


def _input(field: Any, hint: Any) -> Any:
    """Return what a field accepts: what its converter does, where it has one."""
    converter = field.converter
    if converter is None:
        return hint
    if not callable(converter):
        return Any
    names = _parameters(converter)
    return _hints(converter, names).get(names[0], Any) if names else Any
