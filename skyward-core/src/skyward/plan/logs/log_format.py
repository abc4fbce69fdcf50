"""
The stored log of a pool: what its files are called, and what a line of them says.

A pool has one folder, named by its id:

- `pool.json` says what it is, and is written again each time that a client opens or attaches it (`run`);
- `events.RRR.NNNNNN.jsonl`, `calls.…` and `output.…` hold what happened in run `RRR`, in segments of a few MB;
- `end.RRR.json` says how a run ended, with the receipt; a run without it is open, or its program died.

The first line of a segment is a head: `{"skyward_log": 1, "pool": ID, "stream": "calls", "run": 1, "segment": 1}`.
Each other line is an object with `n`, its number within the run over all three streams, `t`, in seconds since 1970,
and `k`, its kind:

| `k` | stream | further keys |
|---|---|---|
| `event` | events; those that come thick, or are the user's own: output | `event` (the class), `say` and `kind` (as the console words it; left out without words), `node`, `instance`, `data` (its fields) |
| `dropped` | events | `stream`, `segments`, `bytes`: old segments were deleted, for the log was full |
| `lost` | events | `lines`, `calls`, `events`: the disk was too slow for so many |
| `line` | output | `node`, `task`, `err` (1 for standard error), `text` |
| `metrics` | output | `node`, `data` (the fields of `sky.Metrics`) |
| `calls` | calls | `fn` (names), `rows`: one list for each call that ended well or was cancelled, see below |
| `failed` | calls | one attempt that failed: `task`, `attempt`, `fn`, `node`, `sent`, `waited`, `ran`, `again`, `error` |
| `running` | calls | an attempt that has run for a second: `task`, `attempt`, `fn`, `node`; `t` is when it began |
| `counted` | calls | more calls than are stored one by one: `fn`, `node`, `ok`, `failed`, `cancelled`, `seconds` (together), `since` |

A row is `[task, attempt, fn, node, sent, waited, ran, how]`: `fn` is an index into the names, `node` -1 where it never
reached one, `sent` the microseconds before `t` (after, where negative) at which it was submitted, `waited` those until it
began, `ran` those until it ended, and `how` 0 for a result and 2 for a cancellation.

Whatever is added later is a new key or kind, which readers pass over; a change that older readers would misread is a
new version, whose files they name and pass over.
"""  # noqa: E501  # the table

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeAlias

from attrs import frozen

__all__ = [
    "CANCELLED", "FAILED", "OK", "STREAMS", "VERSION", "CallRow", "Record", "LogSegment", "Stream", "calls_of", "head",
    "line_record", "parse", "record", "segment_of", "segment_version",
]  # fmt: skip

VERSION = 1
"""The version that this program writes, and the newest that it reads."""

Stream: TypeAlias = Literal["events", "calls", "output"]
STREAMS: tuple[Stream, ...] = ("events", "calls", "output")

Record: TypeAlias = dict[str, Any]
"""One line, parsed; it has at least `n`, `t` and `k`."""

OK, FAILED, CANCELLED = 0, 1, 2
"""How a call ended."""

_NAME = re.compile(r"(events|calls|output)\.(\d{3,9})\.(\d{6,12})\.jsonl")
_encoded = json.JSONEncoder(separators=(",", ":"), default=repr).encode
_quoted = json.encoder.encode_basestring_ascii


@frozen(order=True)
class LogSegment:
    """
    Name one file of a stream.

    >>> LogSegment("calls", 1, 12).file
    'calls.001.000012.jsonl'
    """

    stream: Stream
    run: int
    number: int

    @property
    def file(self) -> str:
        """Return the file's name."""
        return f"{self.stream}.{self.run:03}.{self.number:06}.jsonl"


def segment_of(name: str) -> LogSegment | None:
    """
    Return which segment a file is; None if it is none.

    >>> segment_of("calls.001.000012.jsonl"), segment_of("pool.json")
    (LogSegment(stream='calls', run=1, number=12), None)
    """
    found = _NAME.fullmatch(name)
    return LogSegment(found[1], int(found[2]), int(found[3])) if found is not None else None  # type: ignore[arg-type]


def head(pool_id: str, segment: LogSegment) -> str:
    """Return the first line of a segment, with its end."""
    facts = {"stream": segment.stream, "run": segment.run, "segment": segment.number}
    return _encoded({"skyward_log": VERSION, "pool": pool_id, **facts}) + "\n"


def segment_version(first: bytes) -> int | None:
    """
    Return the version of a segment by its first line; None where that is no head.

    >>> segment_version(b'{"skyward_log":7}\\n'), segment_version(b"garbage\\n")
    (7, None)
    """
    try:
        version = json.loads(first)["skyward_log"]
    except (ValueError, TypeError, KeyError):
        return None
    return version if isinstance(version, int) else None


def record(number: int, at: float, kind: str, facts: Mapping[str, Any]) -> str:
    """
    Return a line of any kind, with its end.

    >>> record(7, 1.5, "lost", {"lines": 3})
    '{"n":7,"t":1.5,"k":"lost","lines":3}\\n'
    """
    return f'{{"n":{number},"t":{round(at, 3)},"k":"{kind}"{"," if facts else ""}{_encoded(facts)[1:]}\n'


def line_record(number: int, at: float, node: int, task: str | None, text: str, *, err: bool) -> str:
    """
    Return the line for a line of output: the same as `record`, in a third of the time.

    >>> line_record(7, 1.5, 0, "12", "epoch 1", err=False)
    '{"n":7,"t":1.500,"k":"line","node":0,"task":"12","text":"epoch 1"}\\n'
    """
    of = f'"task":"{task}",' if task else ""
    return f'{{"n":{number},"t":{at:.3f},"k":"line","node":{node},{of}{_ERR if err else ""}"text":{_quoted(text)}}}\n'


_ERR = '"err":1,'


def parse(line: bytes) -> Record | None:
    """
    Return what a line says; None where it is torn, or says nothing that can be read.

    >>> parse(b'{"n":7,"t":1.5,"k":"line","node":0,"text":"hi"}\\n')["text"]
    'hi'
    >>> parse(b'{"n":7,"t":1.5,"k":"li') is None
    True
    """
    try:
        found = json.loads(line)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    whole = isinstance(found.get("n"), int) and isinstance(found.get("t"), (int, float))
    return found if whole and isinstance(found.get("k"), str) else None


@frozen(kw_only=True)
class CallRow:
    """
    Say how one attempt of a call went; times are in seconds since 1970.

    Args:
        task: The call's id, as events have it.
        attempt: Which attempt it was, from 1.
        function: The function's name.
        node: Where it ran; None if it never reached a node.
        sent: When it was submitted.
        began: When it began to run.
        ended: When it ended.
        outcome: `"ok"`, `"failed"`, `"again"` (failed, and tried again) or `"cancelled"`.
        error: The exception in one line, if it failed.
    """

    task: str
    attempt: int
    function: str
    node: int | None
    sent: float
    began: float
    ended: float
    outcome: Literal["ok", "failed", "again", "cancelled"]
    error: str | None = None


def calls_of(found: Record) -> Iterator[CallRow]:
    """
    Return the calls that a line is about: those of its rows, or the one that failed; none of any other line.

    >>> line = {"n": 1, "t": 10.0, "k": "calls", "fn": ["f"], "rows": [[5, 1, 0, 2, 3_000_000, 1_000_000, 500_000, 0]]}
    >>> [call] = calls_of(line)
    >>> call.task, call.function, call.node, call.sent, call.began, call.ended, call.outcome
    ('5', 'f', 2, 7.0, 8.0, 8.5, 'ok')
    """
    at = float(found["t"])
    if found["k"] == "failed":
        sent, began = at - found["sent"] / 1e6, at - (found["sent"] - found["waited"]) / 1e6
        yield CallRow(
            task=str(found["task"]),
            attempt=found["attempt"],
            function=found["fn"],
            node=found["node"] if found["node"] >= 0 else None,
            sent=sent,
            began=began,
            ended=began + found["ran"] / 1e6,
            outcome="again" if found.get("again") else "failed",
            error=found.get("error"),
        )
    if found["k"] != "calls":
        return
    for task, attempt, function, node, before, waited, ran, how in found["rows"]:
        began = at - (before - waited) / 1e6
        yield CallRow(
            task=str(task),
            attempt=attempt,
            function=found["fn"][function],
            node=node if node >= 0 else None,
            sent=at - before / 1e6,
            began=began,
            ended=began + ran / 1e6,
            outcome="cancelled" if how == CANCELLED else "ok",
        )
