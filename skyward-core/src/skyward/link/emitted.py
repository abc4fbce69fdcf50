"""
Events that tasks emit, as they travel: what each is, in plain data, and a pickle only of what is the user's own.

    u64 call   u16 length of the head   head   payload

The head is JSON.
It holds the fields of Skyward's own events, which are rebuilt from them.
Of any other event it holds the classes' names, so that the pickle is opened only where a handler listens to one.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from skyward.errors import ProtocolError
from skyward.link.frames import decode_json
from skyward.link.messages import EMIT
from skyward.link.payload import Payload, decode
from skyward.link.payload_making import dump
from skyward.model.events.event import Error, Log, Metric, Progress, SkywardEvent

if TYPE_CHECKING:
    from skyward.model.spec.trust_setting import Data

__all__ = ["Emitted", "class_name", "decode_event", "encode_event"]

_HEAD_LIMIT: Final = 32 << 10
_NAMES_LIMIT: Final = 32


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError("no text")
    return str(value)


def _or_none(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else kind(value)


def _stream(value: Any) -> str:
    return {"stdout": "stdout", "stderr": "stderr"}[_text(value)]


_PLAIN: Final[Mapping[type[SkywardEvent], Mapping[str, Callable[[Any], Any]]]] = {
    Progress: {"at": float, "label": _text, "done": operator.index, "total": _or_none(operator.index)},
    Metric: {"at": float, "name": _text, "value": float, "unit": _text, "node": operator.index},
    Log: {"at": float, "line": _text, "stream": _stream, "node": operator.index, "task_id": _or_none(_text)},
    Error: {"at": float, "message": _text, "instance_id": _or_none(_text)},
}
_OF_NAME: Final = {kind.__name__: kind for kind in _PLAIN}


class Emitted(NamedTuple):
    """
    What a task emitted, not yet opened.

    Args:
        call: The task's call.
        event: The event, if it is one of Skyward's that travel as plain data.
        names: The classes that it says it is of, its own first.
        payload: Its pickle, if it is no plain data.
    """

    call: int
    event: SkywardEvent | None
    names: tuple[str, ...]
    payload: Payload


def class_name(kind: type) -> str:
    """
    Return the name by which a class is known on both sides.

    >>> class_name(Log)
    'skyward.model.events.task_event.Log'
    """
    return f"{kind.__module__}.{kind.__qualname__}"


def encode_event(call: int, event: Any, *, data: bool = False) -> tuple[bytes, Payload]:
    """
    Render the body of an EMIT frame, and return the payload that it ends with.

    Args:
        call: The call that emits it.
        event: The event.
        data: Whether its pickle is opened as data.

    Raises:
        Exception: Whatever pickling raises.
    """
    head, payload = _plain(event), Payload((), b"")
    if head is None:
        kinds = [kind for kind in type(event).__mro__ if issubclass(kind, SkywardEvent)]
        head = json.dumps({"of": [class_name(kind) for kind in kinds[:_NAMES_LIMIT]]}).encode()
        payload = dump(event, data=data)
    if len(head) > _HEAD_LIMIT:
        raise ValueError(f"the names of the event's classes have {len(head)} bytes, and {_HEAD_LIMIT} may travel")
    return EMIT.pack(call, len(head)) + head + payload.encode(), payload


def decode_event(body: bytes, fds: tuple[int, ...], trust: Data | None = None) -> Emitted:
    """
    Read the body of an EMIT frame; its pickle is not opened.

    Args:
        body: The body.
        fds: The descriptors that came with the frame. Taken over.
        trust: What of its pickle is opened as data; None opens anything.

    Raises:
        ProtocolError: If it is none.
    """
    if len(body) < EMIT.size:
        raise ProtocolError("An EMIT frame is cut off.")
    call, size = EMIT.unpack_from(body)
    payload = decode(body, EMIT.size + size, fds, trust)
    if size > _HEAD_LIMIT:
        raise ProtocolError(f"An EMIT frame has a head of {size} bytes.")
    head = decode_json(body[EMIT.size : EMIT.size + size])
    if (names := head.get("of")) is None:
        return Emitted(call, _event(head), (), payload)
    if not isinstance(names, list) or not 0 < len(names) <= _NAMES_LIMIT:
        raise ProtocolError("An EMIT frame does not name the classes of its event.")
    return Emitted(call, None, tuple(map(str, names)), payload)


def _plain(event: Any) -> bytes | None:
    """Render an event as plain data; None for one that has to be pickled."""
    fields = _PLAIN.get(type(event))
    if fields is None or event.instance is not None or (isinstance(event, Error) and event.fatal):
        return None
    try:
        values = {name: kind(getattr(event, name)) for name, kind in fields.items()}
        head = json.dumps({"event": type(event).__name__, "fields": values}).encode()
    except (TypeError, ValueError, LookupError, OverflowError):
        return None
    return head if len(head) <= _HEAD_LIMIT else None


def _event(head: dict[str, Any]) -> SkywardEvent:
    kind, fields = _OF_NAME.get(str(head.get("event"))), head.get("fields")
    if kind is None or not isinstance(fields, dict) or fields.keys() != _PLAIN[kind].keys():
        raise ProtocolError("An EMIT frame holds no event that tasks emit.")
    try:
        return kind(**{name: read(fields[name]) for name, read in _PLAIN[kind].items()})
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise ProtocolError(f"An EMIT frame holds a {kind.__name__} with other fields: {error}.") from error
