"""What a worker writes is reported under the call that wrote it, as far as that can be known."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

import pytest

from skyward.link.channel import Batch
from skyward.link.messages import LogLine
from skyward.node.agent.child_process import ChildProcess
from skyward.node.agent.slot_table import new_slot_table


def test_board_tells_what_runs_and_what_ran_last() -> None:
    """Each slot one or the other, or nothing."""
    slot_table = new_slot_table(3)
    try:
        slot_table.start(0, 7, 70)
        slot_table.start(1, 8, 80)
        slot_table.stop(1, 8)
        assert [(running.call, running.thread) for running in slot_table.running()] == [(7, 70)]
        assert slot_table.over() == [8]
        slot_table.start(1, 9, 90)
        assert [running.call for running in slot_table.running()] == [7, 9]
        assert slot_table.over() == []
    finally:
        slot_table.close()


def _told(prepare: Callable[[ChildProcess], None], slots: int = 1) -> list[LogLine]:
    """Have a process write a line that says nothing of its call, and give what is reported of it."""
    told: list[LogLine] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        heard, ended = asyncio.Event(), asyncio.Event()

        def hear(lines: list[LogLine]) -> None:
            told.extend(lines)
            heard.set()

        process = ChildProcess(
            loop,
            Batch(loop),
            argv=["echo", "from a subprocess"],
            env={"PATH": os.environ["PATH"]},
            lane=0,
            slots=slots,
            on_frame=lambda process, frame, fds: None,
            on_put=lambda put: None,
            on_lines=lambda process, stream, lines: hear(lines),
            on_ended=lambda process: ended.set(),
        )
        prepare(process)
        async with asyncio.timeout(20):
            await heard.wait()
        _, status, usage = await asyncio.to_thread(os.wait4, process.pid, 0)
        process.gone(status, usage.ru_maxrss)
        await ended.wait()

    asyncio.run(main())
    return told


def _running(process: ChildProcess) -> None:
    process.began(7, 0.0)
    process.slot_table.start(0, 7, 1)


def _over(process: ChildProcess) -> None:
    _running(process)
    process.slot_table.stop(0, 7)


def _answered(process: ChildProcess) -> None:
    _over(process)
    process.ended(7)


def _sent_ahead(process: ChildProcess) -> None:
    _over(process)
    process.began(8, 0.0)


@pytest.mark.parametrize(
    ("prepare", "call"),
    [
        pytest.param(_running, 7, id="the call runs"),
        pytest.param(_over, 7, id="it is over, and its result was not read yet"),
        pytest.param(_sent_ahead, 7, id="another one waits behind it"),
        pytest.param(_answered, 0, id="its result was read: nobody knows"),
        pytest.param(lambda process: process.began(7, 0.0), 0, id="it has not begun"),
    ],
)
def test_line_without_a_mark_is_the_only_calls(prepare: Callable[[ChildProcess], None], call: int) -> None:
    """Also where it is read just before the call's result."""
    assert _told(prepare) == [LogLine(call, "from a subprocess")]


def test_line_without_a_mark_is_nobodys_where_several_may_have_written_it() -> None:
    """A worker that runs calls side by side has one output."""
    assert _told(_running, slots=2) == [LogLine(0, "from a subprocess")]
