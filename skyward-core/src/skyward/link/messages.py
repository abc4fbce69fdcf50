"""
The bodies of the frames that travel for every call, as fixed structures.

| frame | body |
|---|---|
| TASK | u64 call, f64 timeout in seconds (0 = none), u32 membership, u64 broadcast (0 = none), u8 flags, |
| | 16 bytes function digest, payload |
| FUNCTION | 16 bytes digest, u8 flags, payload |
| RESULT | u64 call, u8 status, f64 seconds it ran, f64 when it began by the node's clock (0 = unknown), payload |
| ITEM | u64 call, u32 stream, payload |
| END | u64 call, u32 stream, bytes of a failure or nothing |
| CREDIT | u64 call, u32 stream, u32 items |
| EMIT | as `emitted.py` says |
| CANCEL | u64 call, u8 reason |
| RECALL | u32 calls that stay |
| RECALLED | u64 for each call, in the order in which they were sent |
| BLOB, DROP, GIVE | digest; BLOB also u64 size |
| FETCH, FETCHED | as `transfer_orders.py` says |
| LOG | u8 stream, then for each line u64 call, u32 length, text |
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from math import inf, isfinite
from struct import Struct
from typing import Any, Final, NamedTuple

from skyward.errors import ProtocolError
from skyward.link.frames import decode_json

TASK = Struct("<QdIQB16s")
FUNCTION = Struct("<16sB")
RESULT = Struct("<QBdd")
ITEM = Struct("<QI")
CREDIT = Struct("<QII")
CANCEL = Struct("<QB")
RECALL = Struct("<I")
BLOB = Struct("<32sQ")
FETCH = Struct("<32sQQ32s")
FETCHED = Struct("<QBd")
CALL = Struct("<Q")
EMIT = Struct("<QH")
_LINES = Struct("<BI")
_LINE = Struct("<QI")
_STREAMS: Final = (1, 2)
_FACTS: Final[dict[str, tuple[Any, Any]]] = {
    "error": (str, ""),
    "message": (str, ""),
    "output": (list, ()),
    "stack": (list, ()),
    "exit_code": (int | None, None),
    "signal": (str | None, None),
    "out_of_memory": (bool, False),
    "culprit": (int, 0),
    "among": (int, 1),
    "memory": (dict | None, None),
}
_MEMORY: Final = {"ran_out": bool, "peak": float | int | None, "limit": float | int | None, "total": float | int | None}
_START: Final[dict[str, Any]] = {
    "mark": str,
    "slots": int,
    "reuse_processes": bool,
    "lanes": list,
    "app_host": dict | None,
}
_COMMAND: Final[dict[str, Any]] = {"argv": list, "env": dict}
_LANE: Final = _COMMAND | {"facts": dict}
_ERRORS: Final = frozenset(
    {
        "CancelledError",
        "ResultError",
        "SerializationError",
        "StateLostError",
        "TaskTimeoutError",
        "WorkerDiedError",
        "WorkerSpentError",
    }
)
"""Errors that a node may report for a call that could not be carried out."""
_FACTS_LIMIT: Final = 512 << 10

TASK_BITS: Final = 48
"""Bits of a call's id that name its task; those above count the attempts before it."""

FUNCTION_DIGEST = 16
"""Bytes of a function's digest."""


def task_of(call: int) -> int:
    """
    Return the id of a task, which all its attempts share.

    >>> task_of(7 | 2 << 48)
    7
    """
    return call & ((1 << TASK_BITS) - 1)


class TaskFlag:
    """Facts of a task that the agent acts on; plain numbers, because `&` of an enum costs a microsecond a call."""

    STORED: Final = 1
    """Its payload names buffers by digest; the agent adds their descriptors."""
    STREAM: Final = 2
    """What it returns is iterated, item by item, to the client."""
    DATA: Final = 4
    """The call's results are opened as data."""
    HELD: Final = 8
    """What it needs was kept by a process of its lane before."""


class FunctionFlag:
    """Facts of a function that the worker acts on."""

    SHAREABLE: Final = 1
    """One unpickled object may serve many calls."""
    STORED: Final = 2
    """Its payload names buffers by digest; the agent adds their descriptors."""


class Status(IntEnum):
    """How a call ended."""

    OK = 0
    """The payload is the result."""
    RAISED = 1
    """The function raised; the payload holds the failure."""
    FAILED = 2
    """The call could not be carried out; the body ends with JSON."""
    CANCELLED = 3
    """The call was stopped because the client asked for it."""
    STREAMED = 4
    """A generator came to its end; its items went before."""


_STATUSES: Final = frozenset(map(int, Status))


class CancelReason(IntEnum):
    """Why a call is to stop."""

    ASKED = 0
    TIMEOUT = 1


class LogLine(NamedTuple):
    """One line that a worker wrote; call 0 is unknown."""

    call: int
    text: str


def encode_lines(stream: int, lines: Iterable[LogLine]) -> bytes:
    """Render a LOG body; stream 1 is stdout, 2 is stderr."""
    pieces = []
    for call, text in lines:
        data = text.encode("utf-8", "surrogatepass")
        pieces.append(_LINE.pack(call, len(data)) + data)
    return _LINES.pack(stream, len(pieces)) + b"".join(pieces)


def count_lines(body: bytes) -> int:
    """
    Return how many lines a LOG body says that it has; `decode_lines` finds out whether that is true.

    >>> count_lines(encode_lines(1, [LogLine(7, "hello")]))
    1
    """
    return int(_LINES.unpack_from(body)[1]) if len(body) >= _LINES.size else 0


def decode_lines(body: bytes) -> tuple[int, list[LogLine]]:
    """
    Read a LOG body.

    Raises:
        ProtocolError: If it is cut off, or has more lines or fewer than it says.

    >>> decode_lines(encode_lines(1, [LogLine(7, "hello")]))
    (1, [LogLine(call=7, text='hello')])
    """
    if not body or body[0] not in _STREAMS:
        raise ProtocolError("A LOG frame does not begin with a stream, 1 or 2.")
    if len(body) < _LINES.size:
        raise ProtocolError("A LOG frame is cut off.")
    lines, at = [], _LINES.size
    for _ in range(count_lines(body)):
        if at + _LINE.size > len(body):
            raise ProtocolError("A LOG frame is cut off.")
        call, size = _LINE.unpack_from(body, at)
        at += _LINE.size
        if at + size > len(body):
            raise ProtocolError("A LOG frame is cut off.")
        lines.append(LogLine(call, body[at : at + size].decode("utf-8", "backslashreplace")))
        at += size
    if at < len(body):
        raise ProtocolError("A LOG frame has more lines than it says.")
    return body[0], lines


def decode_calls(body: bytes) -> list[int]:
    """
    Read a RECALLED body.

    Raises:
        ProtocolError: If it is cut off.

    >>> decode_calls(CALL.pack(7) + CALL.pack(8))
    [7, 8]
    """
    if len(body) % CALL.size:
        raise ProtocolError("A RECALLED frame is cut off.")
    return [call for (call,) in CALL.iter_unpack(body)]


def decode_result(body: bytes) -> tuple[int, int, float, float]:
    """
    Read with what a RESULT body begins: its call, its status, for how many seconds it ran, and when it began.

    Raises:
        ProtocolError: If there is no such status, or it ran for no such time.

    >>> decode_result(RESULT.pack(7, Status.OK, 0.5, 1e9))
    (7, 0, 0.5, 1000000000.0)
    """
    number, status, seconds, began = RESULT.unpack_from(body)
    if status not in _STATUSES:
        raise ProtocolError(f"A RESULT frame has status {status}.")
    if not 0.0 <= seconds < inf:
        raise ProtocolError(f"A RESULT frame reports a call that ran for {seconds} s.")
    if not 0.0 <= began < inf:
        raise ProtocolError(f"A RESULT frame reports a call that began at {began} s.")
    return number, status, seconds, began


def decode_start(body: bytes) -> tuple[dict[str, Any], bytes]:
    """
    Read what an agent is to start, and the plugins behind it.

    Raises:
        ProtocolError: If it lacks something, or something is of another type than it should be.

    >>> decode_start(bytes([2, 0, 0, 0]) + b"{}")
    Traceback (most recent call last):
    ...
    skyward.errors.ProtocolError: A START frame says mark='None', which is no <class 'str'>.
    """
    end = 4 + int.from_bytes(body[:4], "little")
    config = decode_json(body[4:end])
    _check_start(config, _START)
    for lane in config["lanes"]:
        _check_start(lane if isinstance(lane, dict) else {}, _LANE)
    if config["app_host"] is not None:
        _check_start(config["app_host"], _COMMAND)
    if config["slots"] < 1 or not config["lanes"]:
        raise ProtocolError(f"A START frame asks for {config['slots']} slots in {len(config['lanes'])} processes.")
    return config, body[end:]


def _check_start(config: dict[str, Any], kinds: dict[str, Any]) -> None:
    for name, kind in kinds.items():
        value = config.get(name)
        # True is an int in Python, and no number of slots.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ProtocolError(f"A START frame says {name}={str(value)[:100]!r}, which is no {kind}.")


def decode_facts(text: bytes) -> dict[str, Any]:
    """
    Read what a node reports about a call that failed there: every fact that may be asked for, and none beside them.

    Raises:
        ProtocolError: If a fact is not what it should be.

    >>> decode_facts(b'{"error": "ResultError"}')["output"]
    []
    """
    if len(text) > _FACTS_LIMIT:
        raise ProtocolError(f"A failed result reports {len(text)} bytes, and {_FACTS_LIMIT} are the most.")
    reported = decode_json(text)
    if not isinstance(reported.get("error"), str):
        raise ProtocolError("A failed result does not name its error.")
    if reported["error"] not in _ERRORS:
        raise ProtocolError(f"A failed result names {reported['error'][:100]!r}, which no node reports.")
    facts: dict[str, Any] = {}
    for name, (kinds, otherwise) in _FACTS.items():
        facts[name] = reported.get(name, otherwise)
        if name in reported and not isinstance(reported[name], kinds):
            raise ProtocolError(f"A failed result reports {name}={str(reported[name])[:100]!r}, which is no {kinds}.")
    facts["output"] = [str(line) for line in facts["output"]]
    facts["stack"] = [str(line) for line in facts["stack"]]
    facts["memory"] = _memory(facts["memory"] or {})
    return facts


def _memory(reported: dict[str, Any]) -> dict[str, Any]:
    for name, kinds in _MEMORY.items():
        value = reported.get(name)
        if (not isinstance(value, kinds) and value is not None) or (isinstance(value, float) and not isfinite(value)):
            raise ProtocolError(f"A failed result reports of memory {name}={str(value)[:100]!r}.")
    return {name: reported[name] for name in _MEMORY if name in reported}
