"""
What makes and changes scripts, so that most of what they send is nearly right.
"""

from __future__ import annotations

import json
import math
import random
from typing import Any

from fuzz_scripts import AGENT, CODECS, COUNTS, DOOR, KINDS, SHELL, TARGETS, WIRE, Step, read_script, write_script

from skyward.link import messages
from skyward.link.failure import dump_failure
from skyward.link.frames import VERSION, Kind
from skyward.link.messages import LogLine, Status, encode_lines
from skyward.link.payload import Payload
from skyward.link.payload_making import pack
from tests.link.data.mutation import PIECES, mutated

_PICKLE = 2000

DIGESTS = 3
"""How many digests there are, so that steps name each other's blobs and functions."""

_CALLS = (0, 1, 1, 1, 2, 3, (1 << 64) - 1)
_SIZES = (0, 1, 2, 63, 64, 65, 4096, 1 << 20, (1 << 64) - 1)
_ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 1 << 70, 0.5, math.nan, math.inf, "", "x", "\ud800", "\0", "../x", "a/b", "x" * 300),
    *([], [1], [[]], ["a"], {}, {"a": 1}),
)
_FROM_NODE = (
    Kind.RESULT, Kind.RECALLED, Kind.ITEM, Kind.CREDIT, Kind.LOG, Kind.EMIT, Kind.READY, Kind.REFRESHED,
    Kind.FAILED, Kind.WORKER, Kind.STOPPED, Kind.WELCOME, Kind.METRIC, Kind.ANSWER, Kind.PEERS, Kind.KEEP,
)  # fmt: skip
_FROM_CLIENT = (
    Kind.TASK, Kind.TASK, Kind.FUNCTION, Kind.BLOB, Kind.DROP, Kind.FILES, Kind.CREDIT, Kind.ITEM, Kind.END,
    Kind.RECALL, Kind.CANCEL, Kind.MEMBERS, Kind.LOG_READ, Kind.HELLO, Kind.START, Kind.ASK, Kind.REFRESH, Kind.STOP,
    Kind.PEERS, Kind.KEEP,
)  # fmt: skip
_FROM_WORKER = (
    Kind.RESULT, Kind.ITEM, Kind.CREDIT, Kind.EMIT, Kind.RECALLED, Kind.READY, Kind.FAILED, Kind.RETIRE, Kind.PEERS,
    Kind.KEEP,
)  # fmt: skip
_HEADS: tuple[Any, ...] = (
    {"of": ["user.Loss", "skyward.model.events.event_base.SkywardEvent"]},
    {"event": "Progress", "fields": {"at": 1.0, "label": "x", "done": 1, "total": None}},
)
_FACTS = {"error": "WorkerDiedError", "message": "m", "output": ["a"], "exit_code": 1, "signal": None, "culprit": 1}
_OBJECTS: dict[Kind, dict[str, Any]] = {
    Kind.HELLO: {"version": VERSION, "addresses": ["10.0.0.5", None]},
    Kind.WELCOME: {
        "version": VERSION,
        "pid": 1,
        "hostname": "h",
        "port": 1,
        "network": {"interface": "e", "bandwidth_gbps": 1.0},
    },
    Kind.STOP: {"grace": 1.0},
    Kind.ASK: {"number": 1, "listen": 0.01},
    Kind.ANSWER: {"number": 1, "port": 1},
    Kind.MEMBERS: {"version": 1, "members": []},
    Kind.PEERS: {"version": 1, "base": 0, "gone": [], "here": [[0, "10.0.0.1", None]]},
    Kind.WORKER: {"message": "m", "output": ["a"], "exit_code": 1, "signal": None},
    Kind.READY: {"environment": {"A": "b"}, "lanes": 1},
}


def config(*, lanes: int = 1, slots: int = 1, app: bool = False) -> dict[str, Any]:
    """Give the configuration that a client starts an agent with."""
    command = {"argv": ["python"], "env": {"A": "b"}}
    return {
        "mark": "fuzz",
        "slots": slots,
        "reuse_processes": True,
        "lanes": [{**command, "facts": {}}] * lanes,
        "app_host": command if app else None,
    }


class Composer:
    """
    Make and change scripts.

    Args:
        seed: What it does is decided by it.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._calm = False

    def script(self, target: int) -> bytes:
        """Make a script of steps that are nearly right."""
        # Links close at the first frame that makes no sense, so some scripts only cut them.
        self._calm = self._random.random() < 0.3
        steps = [self._step(target) for _ in range(self._random.randrange(1, 10))]
        return write_script(target, self._random.randrange(256), steps)

    def change(self, data: bytes, most: int) -> bytes:
        """Change a script by a step, so that it stays one."""
        chosen = self._random
        target, flags, steps = read_script(data)
        if not steps or chosen.random() < 0.03:
            return self.script(chosen.choice(TARGETS))[:most]
        for _ in range(chosen.choice((1, 1, 1, 2, 4))):
            at = chosen.randrange(len(steps)) if steps else 0
            match chosen.randrange(9):
                case 0 | 1 | 2:
                    steps.insert(at, self._step(target))
                case 3 if steps:
                    del steps[at]
                case 4 if steps:
                    steps.insert(at, chosen.choice(steps))
                case 5 if steps:
                    steps[at] = self._step(target)
                case 6 if steps:
                    # Only what guides itself by coverage changes scripts.
                    import atheris

                    steps[at] = steps[at]._replace(body=bytes(atheris.Mutate(steps[at].body or b"\0", 1024)))
                case 7 if steps:
                    steps[at] = steps[at]._replace(
                        **{chosen.choice(("how", "kind", "lane", "fds")): chosen.randrange(256)}
                    )
                case 8:
                    flags ^= 1 << chosen.randrange(5)
        return write_script(target, flags, steps, most)

    def _step(self, target: int) -> Step:
        chosen = self._random
        lane = chosen.choice((0, 0, 0, 1, 2, 128, 255))
        cut = chosen.choice((0, 0, 0, chosen.randrange(16))) << 4
        how = chosen.choice((0,) * 16 + tuple(range(16)))
        together = chosen.choice((0, 0, 0x40))
        if target == CODECS:
            return self._codec(lane)
        if target in (WIRE, DOOR) and chosen.random() < (0.9 if self._calm else 0.3):
            return self._cut(target)
        if target in (AGENT, DOOR) and (chosen.random() < 0.35 or how >= 13):
            how = chosen.choice((13, 13, 13, 14, 15))
        if how == 14:
            return Step(how | cut, 0, lane, 0, self._printed())
        if how == 15:
            return Step(how | cut, chosen.randrange(5), lane, chosen.randrange(256), b"")
        kinds = _FROM_NODE if target in (SHELL, WIRE) else _FROM_WORKER if how == 13 else _FROM_CLIENT
        kind = chosen.choice(kinds if chosen.random() < 0.95 else KINDS)
        body, fds = self._body(kind)
        if chosen.random() < 0.05:
            body = body[: chosen.randrange(len(body) + 1)]
        return Step(how | cut, KINDS.index(kind), lane, fds | together, body)

    def _cut(self, target: int) -> Step:
        """Let something happen to a connection, or begin one with another greeting."""
        chosen = self._random
        if chosen.random() < 0.1:
            hello = self._json({"version": VERSION, "session": "s", "received": chosen.choice((0, 1, 2, 9))})
            return Step(12, 0, 0, 0, len(hello).to_bytes(4, "little") + b"\1" + hello)
        lane, kind = chosen.choice((0, 1, 2, 3, 7, 50)), chosen.choice((0, 0, 0, 1, 2, 2, 2, 3, 4, 5, 6, 7, 7, 7, 7, 7))
        return Step(15, kind, lane | 1 if target == DOOR else lane, chosen.randrange(256), b"")

    def _codec(self, lane: int) -> Step:
        kind = self._random.randrange(9)
        if kind == 8:
            return Step(0, kind, lane, 0, mutated(self._random, dump_failure(KeyError("gone"))))
        if kind == 7:
            return Step(0, kind, lane, 0, mutated(self._random, self._random.choice(PIECES))[:_PICKLE])
        kinds = (Kind.RESULT, Kind.ITEM, Kind.TASK, Kind.LOG, Kind.RECALLED, Kind.WORKER, Kind.HELLO)
        if kind <= 2:
            body, fds = self._payload()
            at = self._random.choice((0, 1, 12, 39))
            return Step(0, kind, at, fds, bytes(at) + body)
        return Step(0, kind, lane, 0, self._body(kinds[kind])[0])

    def _body(self, kind: Kind) -> tuple[bytes, int]:
        """Make the body of a frame, and say with which descriptors it travels."""
        chosen = self._random
        call, payload, fds = chosen.choice(_CALLS), b"", 0
        if kind in (Kind.TASK, Kind.FUNCTION, Kind.RESULT, Kind.ITEM, Kind.EMIT, Kind.FILES, Kind.KEEP):
            payload, fds = self._payload()
        digest = bytes((chosen.randrange(DIGESTS),))
        match kind:
            case Kind.TASK:
                timeout = chosen.choice((0.0, 0.0, 0.01, 5.0, math.nan, math.inf, -1.0))
                return messages.TASK.pack(call, timeout, 1, 0, chosen.randrange(4), digest * 16) + payload, fds
            case Kind.FUNCTION:
                return messages.FUNCTION.pack(digest * 16, chosen.randrange(4)) + payload, fds
            case Kind.RESULT if chosen.random() < 0.4:
                return messages.RESULT.pack(call, Status.FAILED, 0.1, 0.0) + self._json(_FACTS), 0
            case Kind.EMIT:
                head = self._json(chosen.choice(_HEADS))
                return call.to_bytes(8, "little") + len(head).to_bytes(2, "little") + head + payload, fds
            case Kind.RESULT:
                return messages.RESULT.pack(call, chosen.choice((0, 0, 0, 1, 2, 3, 4, 9)), 0.5, 1e9) + payload, fds
            case Kind.KEEP:
                return call.to_bytes(8, "little") + payload, fds
            case Kind.ITEM:
                return messages.ITEM.pack(call, 0) + payload, fds
            case Kind.END:
                return messages.ITEM.pack(call, 0), 0
            case Kind.CREDIT:
                return messages.CREDIT.pack(call, 0, chosen.choice((0, 1, 16, (1 << 32) - 1))), 0
            case Kind.CANCEL:
                return messages.CANCEL.pack(call, chosen.randrange(3)), 0
            case Kind.RECALLED:
                return b"".join(messages.CALL.pack(chosen.choice(_CALLS)) for _ in range(chosen.randrange(4))), 0
            case Kind.LOG_READ:
                return messages.CALL.pack(call), 0
            case Kind.BLOB:
                return messages.BLOB.pack(digest * 32, chosen.choice(_SIZES)), chosen.choice((1, 1, 9, 25, 41, 49, 3))
            case Kind.DROP:
                return digest * chosen.choice((16, 32, 32, 5)), 0
            case Kind.FILES if chosen.random() < 0.7:
                return self._files(), 0
            case Kind.FILES:
                return payload, fds
            case Kind.LOG:
                lines = [LogLine(call, chosen.choice(("", "text", "\ud800", "é" * 20)))] * chosen.randrange(4)
                return encode_lines(chosen.choice((1, 2, 3)), lines), 0
            case Kind.START:
                given = config(lanes=chosen.randrange(4), slots=chosen.choice((0, 1, 2)), app=chosen.random() < 0.3)
                text = self._json(given)
                return len(text).to_bytes(4, "little") + text + b"plugins", 0
            case _:
                return self._json(_OBJECTS.get(kind, {})), 0

    def _payload(self) -> tuple[bytes, int]:
        """Make a payload, and say with which descriptors it travels."""
        chosen = self._random
        if chosen.random() < 0.3:
            return Payload((), chosen.randbytes(chosen.choice((0, 1, 20)))).encode(), chosen.choice((0, 0, 0, 1, 41))
        if chosen.random() < 0.1:
            return pack([b"x" * chosen.randrange(9) for _ in range(chosen.randrange(1, 4))]).encode(), 0
        table, inline, segment, stored = [], b"", 0, 0
        places = chosen.choice(((0, 0, 1, 2, 2), (2,)))
        for _ in range(chosen.choice((1, 1, 2, 3, 3, 70))):
            place = chosen.choice(places)
            size = chosen.choice(_SIZES) if chosen.random() < 0.3 else chosen.randrange(70)
            digest = b""
            if place == 0:
                inline += bytes(min(size, 100))
            elif place == 1:
                segment = 1
            else:
                stored += 1
                digest = bytes((chosen.randrange(DIGESTS),)) * 32
            table.append(bytes((place,)) + size.to_bytes(8, "little") + digest)
        count = chosen.choice((len(table), len(table), len(table), 0, 1, 300))
        fds = next((code for code, fds in enumerate(COUNTS) if fds == segment + stored), 0)
        if chosen.random() < 0.3:
            fds = chosen.choice((0, segment, 1, 3, 7))
        return count.to_bytes(2, "little") + b"".join(table) + inline, fds | chosen.choice((0, 0, 1, 2, 3, 5, 6)) << 3

    def _files(self) -> bytes:
        chosen = self._random
        names = ("a.py", "b/c.py", "a.py/d.py", "b", "", "/x", "../x", "b/../../x", "x" * 300, "\ud800", "\0", ".")
        paths: Any = [chosen.choice(names) for _ in range(chosen.randrange(4))]
        if chosen.random() < 0.2:
            paths = chosen.choice((*_ODD, [*paths, chosen.choice(_ODD)]))
        count = len(paths) if isinstance(paths, list) and chosen.random() < 0.8 else chosen.randrange(3)
        return pack([json.dumps(paths).encode(), *(chosen.randbytes(3) for _ in range(count))]).encode()

    def _json(self, value: Any) -> bytes:
        if self._random.random() < 0.5:
            value = self._changed(value)
        text = json.dumps(value).encode()
        return text if self._random.random() < 0.97 else text[:-1] + self._random.choice((b"", b"[" * 1500, b"\xff"))

    def _changed(self, value: Any) -> Any:
        """Change one thing somewhere inside."""
        chosen = self._random
        if not isinstance(value, (dict, list)) or not value or chosen.random() < 0.2:
            return chosen.choice(_ODD)
        at: Any = chosen.choice(list(value)) if isinstance(value, dict) else chosen.randrange(len(value))
        copy: Any = value.copy()
        if chosen.random() < 0.2:
            del copy[at]
        else:
            copy[at] = self._changed(value[at])
        return copy

    def _printed(self) -> bytes:
        chosen = self._random
        pieces = (
            *(b"\x1e1\x1f", b"\x1e2\x1d", b"\x1effffffffffffffff1\x1f"),
            *(b"text", b"\n", b"\x1e", b"\xff\xc3", b"\x1d"),
        )
        return b"".join(chosen.choice(pieces) for _ in range(chosen.randrange(1, 12)))
