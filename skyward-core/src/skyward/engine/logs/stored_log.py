"""
The stored log of an open pool: what happens to it, written to this user's disk by one thread.

Whatever happens costs the pool an append to a queue.
Where the disk is too slow the queue is full, and what does not fit is counted and said in the log; where it is full or
broken, the log ends with one warning, and the pool goes on.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyward import private
from skyward.console.wording import tell
from skyward.engine.guardian.journal import STATE_HINT
from skyward.engine.logs.log_folder import LOCKS, pool_folder, prune, write_facts
from skyward.engine.logs.log_segments import Segments, last_run
from skyward.errors import ConfigError
from skyward.link.messages import TASK_BITS, task_of
from skyward.model.events.event import ClusterReady, Metrics, ShutdownRequested, SkywardEvent
from skyward.plan.logs.event_record import LASTING, LONGEST, facts_of, plain
from skyward.plan.logs.hidden_values import Hidden
from skyward.plan.logs.log_format import CANCELLED, FAILED, OK, STREAMS, Stream, line_record, record
from skyward.plan.logs.stored_calls import LONG_S, Ended, StoredCalls

if TYPE_CHECKING:
    from skyward.engine.calls.answer import Answer
    from skyward.engine.calls.call import Call
    from skyward.link.messages import LogLine

__all__ = ["StoredLog"]

_log = logging.getLogger(__name__)

EVERY_S = 0.25
"""Seconds between two writes, while something happens."""

CLOSING_S = 5.0
"""Seconds that a pool which is left waits for its log."""

WAITING = 100_000
"""Lines, calls and events that may wait for the disk."""

WAITING_CHARS = 32 << 20
"""Characters of lines that may wait."""

METRICS_S = 5.0
"""Seconds between two measurements of a node that are stored."""

MOST: Mapping[Stream, int] = {"events": 32 << 20, "calls": 32 << 20, "output": 64 << 20}
"""Bytes that a pool's log may have, by stream: the oldest segments of each go by themselves."""

_LOCK_TRIES, _LOCK_S = 20, 0.005


class StoredLog:
    """
    Write the log of one pool.

    Args:
        pool_id: The pool's id.
        facts: What the pool is, for `pool.json`.
        hidden: Clears texts of secrets.
        most: Bytes that each stream may have.
        waiting: Lines, calls and events that may wait.
    """

    def __init__(
        self,
        pool_id: str,
        facts: Mapping[str, Any],
        hidden: Hidden,
        *,
        most: Mapping[Stream, int] = MOST,
        waiting: int = WAITING,
    ) -> None:
        self.pool_id = pool_id
        self.folder = pool_folder(pool_id)
        self._facts = dict(facts)
        self._hidden = hidden
        self._most = most
        self._limit = waiting
        self._queue: deque[tuple[Any, ...]] = deque()
        # Each is changed by one thread alone: the engine's loop counts what comes, this log's thread what is written.
        self._came = self._wrote = 0
        self._chars_came = self._chars_wrote = 0
        self._lost = [0, 0, 0]
        self._lost_said = [0, 0, 0]
        self._ended: deque[Ended] = deque()
        self._running: dict[int, Call] = {}
        self._asleep = False
        self._measured_at: dict[int, float] = {}
        self._calls = StoredCalls(TASK_BITS)
        self._number = 0
        self._segments: dict[Stream, Segments] = {}
        self._run = 1
        self._pruned = False
        self._broken = False
        self._closing = threading.Event()
        self._wake = threading.Event()
        self._end: dict[str, Any] | None = None
        self._reason = ""
        self._thread = threading.Thread(target=self._work, name="skyward-log", daemon=True)

    def start(self) -> None:
        """Begin to write, in a thread of its own."""
        self._thread.start()

    # From the threads of the pool.

    def event(self, event: SkywardEvent) -> None:
        """Take an event, from any thread."""
        if self._broken:
            return
        if type(event) is Metrics and not self._due(event):
            return
        if len(self._queue) >= self._limit:
            self._lost[2] += 1
            return
        self._queue.append((_EVENT, event))
        if self._asleep:
            self._wake.set()

    def lines(self, node: int, stream: int, lines: list[LogLine]) -> None:
        """Take what a worker wrote, in the engine's loop."""
        chars = sum(len(line.text) for line in lines)
        waits = self._came - self._wrote + len(lines) > self._limit
        if waits or self._chars_came - self._chars_wrote + chars > WAITING_CHARS or self._broken:
            self._lost[0] += len(lines)
            return
        self._came += len(lines)
        self._chars_came += chars
        self._queue.append((_LINES, time.time(), node, stream, lines, chars))
        if self._asleep:
            self._wake.set()

    def began(self, call: Call, node: int) -> None:
        """Take that an attempt began, in the engine's loop."""
        self._running[call.id] = call
        if self._asleep:
            self._wake.set()

    def ended(self, call: Call, answer: Answer, *, again: bool) -> None:
        """Take how an attempt ended, in the engine's loop."""
        ran = self._running.pop(call.id, None)
        if self._broken or len(self._ended) >= self._limit:
            self._lost[1] += 1
            return
        error, how = None, OK
        if answer.failed:
            how = CANCELLED if answer.stopped else FAILED
            error = answer.headline() if how == FAILED else None
        node = answer.node if answer.node is not None else -1
        began = call.began if ran is not None else 0.0
        self._ended.append((call.id, call.function.name, node, call.asked, began, time.monotonic(), how, again, error))
        if self._asleep:
            self._wake.set()

    def close(self, how: str, reason: str, receipt: object | None) -> None:
        """
        Write what waits and how the pool ended; harmless when that is done.

        Args:
            how: `"ended"`, `"failed"` or `"detached"`.
            reason: Why, in words; empty is what the pool was asked to close for.
            receipt: The receipt, if there is one.
        """
        if self._closing.is_set():
            return
        self._end = {"how": how, "reason": reason, "receipt": receipt, "ended": time.time()}
        self._closing.set()
        self._wake.set()
        self._thread.join(CLOSING_S)
        if self._thread.is_alive():
            _log.warning("logs.slow path=%s: what waits for the disk is written later, or lost", self.folder)

    def _due(self, event: Metrics) -> bool:
        if event.at - self._measured_at.get(event.node, 0.0) < METRICS_S:
            return False
        self._measured_at[event.node] = event.at
        return True

    # In the log's thread.

    def _work(self) -> None:
        try:
            self._open()
            while not self._closing.is_set():
                self._write()
                self._sleep()
                self._closing.wait(EVERY_S)
            self._write()
            self._finish()
        except (OSError, ConfigError) as error:
            self._give_up(error)
        except Exception as error:
            _log.exception("logs.failed path=%s", self.folder)
            self._give_up(error)
        finally:
            for segments in self._segments.values():
                segments.close()
            LOCKS.release(self.pool_id, over=True)

    def _sleep(self) -> None:
        """Wait until something happens; while calls run, a second at most, for those of them that take long."""
        self._wake.clear()
        self._asleep = True
        # Before the last look: what comes after it finds this thread asleep, and wakes it.
        if not (self._queue or self._ended or self._closing.is_set()):
            self._wake.wait(1.0 if self._running else None)
        self._asleep = False

    def _open(self) -> None:
        private.directory(self.folder, hint=STATE_HINT)
        # A reader that looks whether this process lives has it for a moment.
        for _ in range(_LOCK_TRIES):
            if LOCKS.acquire(self.pool_id):
                break
            time.sleep(_LOCK_S)
        self._run = last_run(self.folder) + 1
        self._facts["began"] = _first_began(self.folder, self._facts["began"])
        write_facts(self.folder / "pool.json", {**self._facts, "run": self._run})
        for stream in STREAMS:
            self._segments[stream] = Segments(self.folder, self.pool_id, stream, self._run, most=self._most[stream])
        # So that a run without an event is known by its number, too.
        self._append("events", [self._next(time.time(), "opened", {"process": os.getpid()})])

    def _write(self) -> None:
        """Write what waits."""
        texts: dict[Stream, list[str]] = {stream: [] for stream in STREAMS}
        now = time.monotonic()
        for _ in range(len(self._queue)):
            item = self._queue.popleft()
            if item[0] == _LINES:
                texts["output"].extend(self._lines_of(*item[1:5]))
                self._wrote += len(item[4])
                self._chars_wrote += item[5]
            else:
                self._event(item[1], texts)
        self._calls.add([self._ended.popleft() for _ in range(len(self._ended))], now)
        wall = time.time()
        self._calls.running(self._running_for_long(now), now)
        for kind, facts in self._calls.take(now, wall, self._hidden.clear):
            at = facts.pop("t", wall)
            texts["calls"].append(self._next(at, kind, facts))
        if self._lost != self._lost_said:
            lost = [now - then for now, then in zip(self._lost, self._lost_said, strict=True)]
            self._lost_said = list(self._lost)
            facts = dict(zip(("lines", "calls", "events"), lost, strict=True))
            texts["events"].append(self._next(wall, "lost", facts))
        for stream, lines in texts.items():
            self._append(stream, lines)

    def _running_for_long(self, now: float) -> dict[int, tuple[str, int, float]]:
        # A copy, as the engine's loop goes on.
        running = self._running.copy().items()
        return {
            number: (call.function.name, -1 if call.on is None else call.on, call.began)
            for number, call in running
            if now - call.began >= LONG_S
        }

    def _lines_of(self, at: float, node: int, stream: int, lines: list[LogLine]) -> list[str]:
        whole = [line.text if len(line.text) <= LONGEST else _cut(line.text) for line in lines]
        cleared = self._hidden.clear("\n".join(whole)).split("\n")
        if len(cleared) != len(lines):
            # A line held the end of one.
            cleared = [self._hidden.clear(text) for text in whole]
        written = []
        for line, text in zip(lines, cleared, strict=True):
            self._number += 1
            task = str(task_of(line.call)) if line.call else None
            written.append(line_record(self._number, at, node, task, text, err=stream == 2))
        return written

    def _event(self, event: SkywardEvent, texts: dict[Stream, list[str]]) -> None:
        try:
            facts = facts_of(event, self._hidden.clear)
            at = float(event.at)
        except Exception as error:  # one of the user's own, which may do as it likes
            facts, at = {"event": type(event).__name__, "data": {"unreadable": type(error).__name__}}, time.time()
        if type(event) is Metrics:
            facts.pop("event")
            texts["output"].append(self._next(at, "metrics", facts))
            return
        if isinstance(event, ShutdownRequested):
            self._reason = event.reason
        line = tell(event)
        if line is not None:
            facts = {"say": self._hidden.clear(line.text), "kind": line.kind, **facts}
        texts["events" if type(event) in LASTING else "output"].append(self._next(at, "event", facts))
        if isinstance(event, ClusterReady) and not self._pruned:
            self._pruned = True
            prune(self.pool_id)

    def _append(self, stream: Stream, lines: list[str]) -> None:
        dropped, freed = self._segments[stream].append(lines)
        if dropped:
            facts = {"stream": stream, "segments": dropped, "bytes": freed}
            self._segments["events"].append([self._next(time.time(), "dropped", facts)])

    def _finish(self) -> None:
        assert self._end is not None
        end = {**self._end, "receipt": plain(self._end["receipt"], self._hidden.clear)}
        end["reason"] = self._hidden.clear(end["reason"] or self._reason)
        write_facts(self.folder / f"end.{self._run:03}.json", {"run": self._run, **end})
        if not self._pruned:
            prune(self.pool_id)

    def _next(self, at: float, kind: str, facts: Mapping[str, Any]) -> str:
        self._number += 1
        return record(self._number, at, kind, facts)

    def _give_up(self, error: BaseException) -> None:
        """End the log, and say so once."""
        self._broken = True
        self._queue.clear()
        self._ended.clear()
        _log.warning("The stored log %s ends here, and the pool goes on without it: %s", self.folder, error)


_EVENT, _LINES = range(2)


def _cut(text: str) -> str:
    return f"{text[:LONGEST]}… ({len(text) - LONGEST} more characters)"


def _first_began(folder: Path, now: float) -> float:
    """Return when the pool of a folder was first opened."""
    try:
        with open(private.opened(folder / "pool.json", os.O_RDONLY), encoding="utf-8") as file:
            return min(now, float(json.load(file)["began"]))
    except (OSError, ConfigError, ValueError, KeyError, TypeError):
        return now
