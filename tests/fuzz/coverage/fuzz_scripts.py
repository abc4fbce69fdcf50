"""
What an input says: a script of steps, written as bytes, made plainer, and told in words.

One byte names the target, one says how its world begins, and then come steps.
Most steps are frames with a valid header, so that bodies and not headers are searched.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from skyward.link.frames import HEADER, Kind

LONGEST = 4096
"""Bytes of an input."""

_STEPS = 48

KINDS = tuple(Kind)
STEP = Struct("<BBBBH")
FRAME, LENGTH, KIND, FDS, RAW, WORKER, OUTPUT, EVENT = range(8)
WAYS = (FRAME,) * 9 + (LENGTH, KIND, FDS, RAW, WORKER, OUTPUT, EVENT)
COUNTS = (0, 1, 1, 2, 3, 5, 64, 65)
TARGETS = PARSER, CODECS, SHELL, AGENT, WIRE, DOOR = range(6)
CUT = ("cut", "lies", "acknowledges", "asks", "greets again", "claims", "waits", "says")


class Step(NamedTuple):
    """One step of a script; the lower half of `how` says what is done, the upper half where its bytes are cut."""

    how: int
    kind: int
    lane: int
    fds: int
    body: bytes

    @property
    def way(self) -> int:
        """Say what is done."""
        return WAYS[self.how & 15]

    @property
    def frame_kind(self) -> int:
        """Give the kind of the frame."""
        return self.kind if self.way == KIND else int(KINDS[self.kind % len(KINDS)])

    @property
    def name(self) -> str:
        """Name the kind of the frame."""
        return Kind(self.frame_kind).name if self.frame_kind in set(KINDS) else str(self.frame_kind)

    def wire(self) -> bytes:
        """Render the bytes that are sent."""
        if self.way in (RAW, OUTPUT):
            return self.body
        length, fds = len(self.body), COUNTS[self.fds & 7]
        if self.way == LENGTH:
            length = self.lane | self.fds << 14
        elif self.way == FDS:
            fds = self.fds >> 3
        return HEADER.pack(length, self.frame_kind, fds, self.lane if self.lane < 250 else 65535) + self.body

    def pieces(self) -> list[bytes]:
        """Cut the bytes that are sent."""
        data = self.wire()
        cut = len(data) * (self.how >> 4) // 16
        return [piece for piece in (data[:cut], data[cut:]) if piece]

    def descriptors(self) -> list[int]:
        """Open the descriptors that travel with it."""
        if self.way in (RAW, OUTPUT, EVENT):
            return []
        return [_descriptor(self.fds >> 3 & 7) for _ in range(COUNTS[self.fds & 7])]


def read_script(data: bytes) -> tuple[int, int, list[Step]]:
    """Read an input: its target, how its world begins, and its steps."""
    if len(data) < 2:
        return PARSER, 0, []
    steps: list[Step] = []
    at = 2
    while at + STEP.size <= len(data) and len(steps) < _STEPS:
        how, kind, lane, fds, size = STEP.unpack_from(data, at)
        at += STEP.size
        steps.append(Step(how, kind, lane, fds, data[at : at + size]))
        at += size
    return data[0] % len(TARGETS), data[1], steps


def write_script(target: int, flags: int, steps: list[Step], most: int = LONGEST) -> bytes:
    """Render an input that `read_script` reads."""
    data = bytes((target, flags))
    for step in steps:
        piece = STEP.pack(*step[:4], len(step.body)) + step.body
        if len(data) + len(piece) > most:
            break
        data += piece
    return data


def smaller(data: bytes) -> Iterator[bytes]:
    """Give scripts that are a little shorter or plainer than one."""
    target, flags, steps = read_script(data)
    if (plain := write_script(target, flags & 31, steps)) != data:
        yield plain
    for at, step in enumerate(steps):
        yield write_script(target, flags, steps[:at] + steps[at + 1 :])
        plainer = [{"how": step.how & 15}, {"lane": 0}, {"fds": step.fds & 7}, {"fds": 0}]
        bodies = [step.body[: len(step.body) // 2], step.body[len(step.body) // 2 :], step.body[:-1], step.body[1:]]
        for other in (*(step._replace(**fields) for fields in plainer), *(step._replace(body=b) for b in bodies)):
            if other != step:
                yield write_script(target, flags, [*steps[:at], other, *steps[at + 1 :]])


def describe(data: bytes) -> list[str]:
    """Say in words what an input does."""
    target, flags, steps = read_script(data)
    lines = [f"{('parser', 'codecs', 'node shell', 'agent', 'wire', 'door')[target]}, flags {flags:#x}"]
    for step in steps:
        way = ("frame", "wrong length", "wrong kind", "wrong fds", "raw", "worker", "output", "event")[step.way]
        if target == CODECS:
            kind = ("decode", "decode", "parts", "lines", "calls", "facts", "json")[step.kind % 7]
        elif step.way == EVENT:
            kind = str(step.kind)
            if target == WIRE or (target == DOOR and step.lane & 1):
                kind = CUT[step.kind % 8]
            elif target in (AGENT, DOOR):
                kind = ("tick", "seconds", "begins", "dies", "shutdown")[step.kind % 5]
        else:
            kind = step.name
        cut = f" cut={step.how >> 4}" if step.how >> 4 else ""
        sent = f"{COUNTS[step.fds & 7]} of sort {step.fds >> 3 & 7}"
        lines.append(f"{way} {kind} lane={step.lane} fds={step.fds:#x} ({sent}){cut} body={step.body!r}")
    return lines


def name_of(target: int, step: Step) -> str:
    """Name what a step is, whatever it holds."""
    if step.way in (RAW, OUTPUT, EVENT):
        return ("bytes", "output", "event")[(RAW, OUTPUT, EVENT).index(step.way)]
    by = "worker's " if step.way == WORKER else "node's " if target in (SHELL, WIRE) else "client's "
    return by + step.name


def _descriptor(sort: int) -> int:
    if sort < 5:
        fd = os.memfd_create("fuzz")
        os.ftruncate(fd, (4096, 64, 1 << 20, 0, 1)[sort])
        return fd
    if sort == 5:
        reading, writing = os.pipe()
        os.close(writing)
        return reading
    return os.open("/dev/null" if sort == 6 else "/", os.O_RDONLY)
