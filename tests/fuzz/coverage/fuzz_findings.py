"""
What goes wrong while an input runs, which of it is one finding, and the smallest input that shows it.
"""

from __future__ import annotations

import gc
import hashlib
import logging
import os
import re
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from fuzz_scripts import describe, name_of, read_script, smaller, write_script

from skyward.node.agent.fds import close_all

HANG = 2.0
"""Seconds after which an input hangs."""

_MINIMIZING = 20.0


class Hang(BaseException):
    """Unwind an input that takes too long."""


class Broken(Exception):
    """Say what does not hold although nothing was raised."""


class Caught(NamedTuple):
    """One thing that must not happen; those with the same key are one finding."""

    key: str
    text: str


class Watch:
    """
    Gather whatever goes wrong while an input runs.

    Args:
        script: What runs an input.
    """

    def __init__(self, script: Callable[[bytes, Watch], None]) -> None:
        self._script = script
        self.caught: list[Caught] = []
        signal.signal(signal.SIGALRM, self._too_long)
        sys.unraisablehook = lambda hook: self.note("ignored in __del__", hook.exc_value)
        for name in ("skyward", "asyncio"):
            logging.getLogger(name).propagate = False
            logging.getLogger(name).addHandler(_Handler(self))

    def note(self, where: str, error: BaseException | None) -> None:
        """Take note of an exception."""
        if isinstance(error, Hang):
            where = "hang"
        frames = traceback.extract_tb(error.__traceback__) if error is not None else []
        ours = [frame for frame in frames if "skyward" in frame.filename] or list(frames)
        place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno} {ours[-1].name}" if ours else "-"
        text = re.sub(r"[0-9a-f]{4,}|\d+", "N", str(error)) if isinstance(error, Broken) else ""
        self.caught.append(
            Caught(f"{where}: {type(error).__name__} {text} at {place}", "".join(traceback.format_exception(error)))
        )

    def run(self, data: bytes) -> list[Caught]:
        """Run one input, and give what went wrong."""
        caught = self._once(data)
        if any(one.key.startswith("hang") for one in caught):
            # On a busy machine the process itself may have waited.
            again = {one.key for one in self._once(data)}
            caught = [one for one in caught if not one.key.startswith("hang") or one.key in again]
        return caught

    def _once(self, data: bytes) -> list[Caught]:
        self.caught = []
        before = _open_descriptors()
        try:
            # Again and again, because the first may be swallowed by a finalizer.
            signal.setitimer(signal.ITIMER_REAL, HANG, HANG)
            try:
                self._script(data, self)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except (Hang, Exception) as error:
            self.note("raised", error)
        if _open_descriptors() - before:
            gc.collect()
            if left := _open_descriptors() - before:
                self.note("leak", Broken(f"descriptors stay open: {len(left)}"))
            close_all(tuple(left))
        return self.caught

    def _too_long(self, number: int, frame: FrameType | None) -> NoReturn:
        raise Hang(f"more than {HANG} s")


class Found(NamedTuple):
    """A finding: its key, the smallest input so far, what went wrong with it, and how often."""

    key: str
    data: bytes
    text: str
    times: int


class Findings:
    """
    Keep what was found, each finding once.

    Args:
        watch: What runs inputs again, for smaller ones.
    """

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._found: dict[str, Found] = {}
        self._leaks: dict[frozenset[str], str] = {}

    def __len__(self) -> int:
        return len(self._found)

    def take(self, data: bytes) -> None:
        """Run one input, and keep what goes wrong."""
        for key, text in self._watch.run(data):
            if key.startswith("leak"):
                self._leak(key, data, text)
            else:
                self._find(key, Found(key, data, text, 1))

    def tell(self, corpus: Path) -> None:
        """Print each finding, and keep the smallest input that shows it."""
        for name, found in sorted(self._found.items()):
            data, text = self._minimal(found, _MINIMIZING)
            file = f"finding-{hashlib.sha256(name.encode()).hexdigest()[:10]}"
            (corpus / file).write_bytes(data)
            print(f"\n{name}\n  {found.times} times; {file}: {data.hex()}")
            for line in describe(data):
                print(f"    {line}")
            print("  " + text.replace("\n", "\n  ").rstrip())

    def _find(self, name: str, found: Found) -> None:
        known = self._found.get(name)
        if known is None:
            print(f"finding: {name}", flush=True)
            self._found[name] = found
        else:
            least = min(known, found, key=lambda one: len(one.data))
            self._found[name] = least._replace(times=known.times + 1)

    def _leak(self, key: str, data: bytes, text: str) -> None:
        """Name a leak by the steps that it needs, unless leaks that are known explain it."""
        target, flags, steps = read_script(data)
        names = {name_of(target, step) for step in steps}
        known = [leak for leak in self._leaks if leak <= names]
        if known:
            explained = frozenset().union(*known)
            data = write_script(target, flags, [step for step in steps if name_of(target, step) not in explained])
            if all(one.key != key for one in self._watch.run(data)):
                name = self._leaks[known[0]]
                self._find(name, self._found[name])
                return
        data, text = self._minimal(Found(key, data, text, 1), 5.0)
        needed = frozenset(name_of(target, step) for step in read_script(data)[2])
        name = self._leaks.setdefault(needed, f"leak: {', '.join(sorted(needed)) or 'nothing'}")
        self._find(name, Found(key, data, text, 1))

    def _minimal(self, found: Found, seconds: float) -> tuple[bytes, str]:
        """Leave out whatever a finding does not need."""
        until = time.monotonic() + seconds
        key, data, text, _ = found
        candidates = smaller(data)
        while time.monotonic() < until and (candidate := next(candidates, None)) is not None:
            again = [one.text for one in self._watch.run(candidate) if one.key == key]
            if again:
                data, text = candidate, again[0]
                candidates = smaller(data)
        return data, text


class _Handler(logging.Handler):
    """Take a logged exception for what it is."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self._watch.note(record.getMessage(), record.exc_info[1])


def _open_descriptors() -> set[int]:
    found = map(int, os.listdir("/proc/self/fd"))
    return {fd for fd in found if _is_open(fd)}


def _is_open(fd: int) -> bool:
    """Tell a descriptor from the one that was open only to list the others."""
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True
