"""An event as a line of the stored log: its fields as plain values, without secrets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from skyward.model.events.event import (
    ALL,
    BootstrapCommand,
    BootstrapConsole,
    CostUpdate,
    Log,
    Metric,
    Metrics,
    Progress,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)
from skyward.model.instances.cost_report import FirstResult, NodeReceipt, Receipt

__all__ = ["LASTING", "LONGEST", "UNSTORED", "facts_of", "plain"]

UNSTORED: tuple[type[SkywardEvent], ...] = (Log, Metric, Progress, TaskCompleted, TaskStarted)
"""What is not stored as an event: lines and calls are stored as such, and the others come too thick."""

LASTING = frozenset(ALL) - {CostUpdate, Metrics, BootstrapCommand, BootstrapConsole, *UNSTORED}
"""The types that have a stream of their own, so that nothing that comes thick, or is the user's, can push them out."""

LONGEST = 8192
"""Characters that are stored of a text."""

_BASE = frozenset({"at", "instance"})
_OPENED = (Receipt, NodeReceipt, FirstResult)


def facts_of(event: SkywardEvent, clear: Callable[[str], str]) -> dict[str, Any]:
    """
    Return what a line says of an event, besides its words.

    Args:
        event: The event.
        clear: Clears a text of secrets.

    >>> from skyward.model.events.event import NodeReady
    >>> facts_of(NodeReady(node=2), lambda text: text)
    {'event': 'NodeReady', 'node': 2, 'data': {'node': 2}}
    """
    kind = type(event)
    names = [each.name for each in attrs.fields(kind)] if attrs.has(kind) else list(getattr(event, "__dict__", ()))
    # A receipt has a place of its own, and a spec is described there.
    data = {name: getattr(event, name, None) for name in names if name not in _BASE}
    data = {name: plain(value, clear) for name, value in data.items() if value is not None and name != "receipt"}
    instance: Any = event.instance
    node = getattr(event, "node", None)
    node = instance.node if node is None and instance is not None else node
    found: dict[str, Any] = {"event": kind.__name__}
    if isinstance(node, int):
        found["node"] = node
    if instance is not None and instance.id:
        found["instance"] = instance.id
    return {**found, "data": data}


def plain(value: object, clear: Callable[[str], str]) -> Any:
    """
    Return a value as JSON may hold it; what is no plain value is named by its class.

    Args:
        value: The value.
        clear: Clears a text of secrets.

    >>> plain(("a", 1, None, object()), str.upper)
    ['A', 1, None, '<object>']
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return clear(value[:LONGEST])
    if isinstance(value, (tuple, list)):
        return [plain(each, clear) for each in value]
    if isinstance(value, Mapping):
        return {str(key): plain(each, clear) for key, each in value.items()}
    if isinstance(value, _OPENED):
        return {each.name: plain(getattr(value, each.name), clear) for each in attrs.fields(type(value))}
    return f"<{type(value).__name__}>"
