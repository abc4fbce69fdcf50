"""
Where worker processes are: they say it themselves, and where they cannot, their interpreters answer a signal.

What a process says of itself is whole, because no thread of its Python runs meanwhile.
Where C code holds the interpreter no thread can say anything. faulthandler writes all threads from its signal handler,
which needs no interpreter lock; it reads frames that must not run, or it can crash the process: so it is asked second.
The signal is taken by the thread that listens to the agent, so that no call is cut short by it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from skyward.link.frames import MAX_BODY, Kind, decode_json, encode
from skyward.link.messages import RESULT, Status
from skyward.link.stack_dump import call_lines, complete, threads_of
from skyward.node.agent.entry import STACKS_SIGNAL

if TYPE_CHECKING:
    from skyward.node.agent.child_process import ChildProcess

__all__ = ["StackDumps", "with_stack"]

TURN = 1.0
"""Seconds in which a thread of a worker gets its turn if its Python runs: one that has it yields it after 5 ms."""

PATIENCE = 0.3
"""Seconds that a process has to write where it is; a signal takes less than a millisecond."""

_LOOK = 0.005
_ROOM = MAX_BODY // 4
"""Bytes of an answer: all processes of a node share them."""

_STOPPED = {"T": "it is stopped by a signal", "t": "a debugger has stopped it", "D": "the kernel waits for a device"}


class _DumpRequest:
    """A process that was asked, and what waits for its answer."""

    def __init__(self, process: ChildProcess) -> None:
        self.process = process
        self.began = time.monotonic()
        self.signalled = False
        self.waiting: list[Callable[[dict[str, Any]], None]] = []


class StackDumps:
    """
    Ask worker processes where they are.

    Args:
        loop: The agent's loop.
        processes: Lists the workers there are, of any readiness.
        answer: Takes each answer to a question of the client's.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        processes: Callable[[], Iterable[ChildProcess]],
        answer: Callable[[dict[str, Any]], None],
    ) -> None:
        self._loop = loop
        self._processes = processes
        self._answer = answer
        self._questions: dict[int, _DumpRequest] = {}

    def ask(self, question: dict[str, Any]) -> bool:
        """
        Begin to answer a question, and return whether it is about stacks.

        Args:
            question: `stacks` asks for those of all workers; with its `number`, which its answer repeats.
        """
        if "stacks" not in question:
            return False
        number, dumps = int(question["number"]), list[dict[str, Any]]()
        asked = [process for process in self._processes() if process.ready and process.exit_status is None]

        def take(dump: dict[str, Any]) -> None:
            dumps.append(_fitting(dump, _ROOM // len(asked)))
            if len(dumps) == len(asked):
                self._answer({"number": number, "processes": sorted(dumps, key=lambda dump: int(dump["lane"]))})

        for process in asked:
            self.take(process, take)
        if not asked:
            self._answer({"number": number, "processes": []})
        return True

    def take(self, process: ChildProcess, done: Callable[[dict[str, Any]], None]) -> None:
        """
        Ask one process; answered at once if it is gone.

        Args:
            process: The process.
            done: Called with the dump, as `link/stack_dump.py` says.
        """
        question = self._questions.get(process.pid)
        if question is None:
            question = self._questions[process.pid] = _DumpRequest(process)
            self._loop.call_soon(self._look, question)
            if process.exit_status is None:
                process.own_stacks = None
                process.control.send(encode(Kind.STACKS))
        question.waiting.append(done)

    def at_timeout(self, process: ChildProcess, call: int) -> bool:
        """
        Record where a call is that is out of time, and return whether that is done; asked again and again.

        Args:
            process: The process that runs it.
            call: Its id.
        """
        if call not in process.stacks:
            process.stacks[call] = None
            self.take(process, partial(_note, process, call))
        return process.stacks[call] is not None

    def _look(self, question: _DumpRequest) -> None:
        process, passed = question.process, time.monotonic() - question.began
        there = process.exit_status is None
        said, text = process.own_stacks, process.dump_file.read() if there and question.signalled else ""
        if there and said is None and passed < TURN + PATIENCE and not complete(text):
            if passed > TURN and not question.signalled:
                question.signalled = True
                process.dump_file.clear()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, STACKS_SIGNAL)
            self._loop.call_later(_LOOK, self._look, question)
            return
        del self._questions[process.pid]
        dump = {
            "pid": process.pid,
            "lane": process.lane,
            "threads": threads_of(text) if said is None else said["threads"],
            "tasks": [] if said is None else said["tasks"],
            "calls": [],
            "trouble": "" if text or said is not None else _silence(process),
        }
        if process.exit_status is None:
            now = time.monotonic()
            dump["calls"] = [[one.call, one.thread, now - one.since] for one in process.slot_table.running()]
        if text and said is None:
            dump["trouble"] = "no thread of its Python gets its turn: C code holds the interpreter, or it is busy"
        for done in question.waiting:
            done(dump)


def with_stack(process: ChildProcess, body: bytes) -> bytes:
    """
    Add where a call was to its failure, if it ran out of time.

    Args:
        process: The process that ran it.
        body: Of its RESULT frame.
    """
    call, status, _, _ = RESULT.unpack_from(body)
    lines = process.stacks.pop(call, None)
    if not lines or status != Status.FAILED:
        return body
    facts = decode_json(body[RESULT.size :])
    return body[: RESULT.size] + json.dumps({**facts, "stack": lines}).encode()


def _note(process: ChildProcess, call: int, dump: dict[str, Any]) -> None:
    if call in process.stacks:
        process.stacks[call] = call_lines(dump, call)


def _silence(process: ChildProcess) -> str:
    """Explain why a process has written nothing."""
    if process.exit_status is not None:
        return "it has ended"
    try:
        with open(f"/proc/{process.pid}/stat", encoding="utf-8", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        state = ""
    return f"it does not answer: {_STOPPED.get(state, f'none of its threads took a signal within {PATIENCE:g} s')}"


def _fitting(dump: dict[str, Any], room: int) -> dict[str, Any]:
    """Leave out threads and tasks that are too many for a frame, those with calls last."""
    calls = {ident for _, ident, _ in dump["calls"]}
    threads: list[Any] = []
    tasks: list[Any] = []
    wanted = [(threads, each) for each in sorted(dump["threads"], key=lambda thread: thread[0] not in calls)]
    for kept, each in [*wanted, *((tasks, task) for task in dump["tasks"])]:
        room -= len(json.dumps(each))
        if room < 0:
            more = "there are more threads or tasks than fit"
            return {**dump, "threads": threads, "tasks": tasks, "trouble": dump["trouble"] or more}
        kept.append(each)
    return {**dump, "threads": threads, "tasks": tasks}
