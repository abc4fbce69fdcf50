"""The append-only console."""

from __future__ import annotations

import io
import re

from skyward.console.log import LogConsole
from skyward.model.events.event import (
    ClusterReady,
    CostUpdate,
    Error,
    Log,
    Metric,
    NodeReady,
    Progress,
    SkywardEvent,
    TaskCompleted,
    TaskStarted,
)


def written(*events: SkywardEvent) -> list[str]:
    """What the console writes about some events, without the times of day."""
    stream = io.StringIO()
    console = LogConsole(stream)
    for event in events:
        console.handle(event)
    console.close()
    lines = stream.getvalue().splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d ", line) for line in lines)
    return [line[9:] for line in lines]


def failed(number: int, at: float) -> TaskCompleted:
    return TaskCompleted(task_id=str(number), function="f", node=0, success=False, duration=0.0, error="no", at=at)


def test_lines_carry_their_node() -> None:
    """Log lines and lifecycle can be told apart, and by node."""
    assert ["node-2 | hello", "node-2 · ready", "skyward · bad"] == written(
        Log(line="hello", node=2), NodeReady(node=2), Error(message="bad")
    )


def test_short_tasks_have_no_lines() -> None:
    """Thousands of tiny tasks write nothing but their number, at the end."""
    tasks = (TaskCompleted(task_id=str(n), function="f", node=0, duration=0.1, at=100.0) for n in range(1000))
    assert ["skyward · 1,000 calls done, in 0 ms"] == written(*tasks)


def test_long_tasks_have_a_line() -> None:
    """A task longer than a second has a line when it ends."""
    assert ["node-0 · train returned after 2.0 s", "skyward · 1 call done, in 0 ms"] == written(
        TaskCompleted(task_id="1", function="train", node=0, duration=2.0)
    )


def test_many_failures_are_counted() -> None:
    """Ten failures a second are shown; the rest of that second is one line."""
    lines = written(*(failed(number, 100.0) for number in range(1000)), failed(1000, 101.5))
    assert 13 == len(lines)
    assert ["skyward · 990 more failed or are tried again", "node-0 · f failed after 0 ms: no"] == lines[-3:-1]


def test_failures_that_were_held_back_are_told_at_the_end() -> None:
    """Closing the console tells what it has not told yet."""
    lines = written(*(failed(number, 100.0) for number in range(15)))
    assert ["skyward · 5 more failed or are tried again", "skyward · 15 calls failed, in 0 ms"] == lines[-2:]


def test_what_was_cancelled_is_counted() -> None:
    """An interrupt stops many calls, and none of them failed."""
    stopped = [
        TaskCompleted(task_id=str(number), function="f", node=0, success=False, stopped=True, at=101.0)
        for number in range(47)
    ]
    ready = ClusterReady(nodes=3, elapsed=1.0, at=100.0)
    assert ["skyward · 47 calls cancelled, in 1.0 s on 3 nodes"] == written(ready, *stopped)[1:]


def test_progress_is_told_once_a_second() -> None:
    """However often a map reports, a reader gets a line a second, and the end."""
    reports = (Progress(label="f", done=n, total=300, at=100 + n / 100) for n in range(301))
    assert [
        "skyward · f: 100 of 300 (33%), 100 a second",
        "skyward · f: 200 of 300 (67%), 100 a second",
        "skyward · f: 300 of 300 in 3.0 s, 100 a second",
    ] == written(*reports)


def test_progress_of_long_maps_is_told_less_often() -> None:
    """A file that grows for hours stays readable."""
    reports = (Progress(label="f", done=n, at=100.0 + n) for n in range(1000))
    assert len(written(*reports)) < 120


def test_progress_without_news_is_not_told() -> None:
    """A map that stands still writes nothing."""
    assert [] == written(*(Progress(label="f", done=0, total=10, at=100.0 + n) for n in range(50)))


def test_a_map_that_is_over_at_once_is_told_once() -> None:
    """The end is shown even if it is the first report."""
    assert ["skyward · f: 3 of 3"] == written(Progress(label="f", done=3, total=3, at=1.0))


def test_cost_is_told_once_a_minute() -> None:
    """A pool that is paid for says so now and then; one that is free never does."""

    def cost(at: float, rate: float) -> CostUpdate:
        return CostUpdate(
            elapsed_seconds=at, accumulated_cost=at / 100, hourly_rate=rate, spot_count=1, ondemand_count=0, at=at
        )

    assert ["skyward · cost $1.00 so far, $36.00 an hour", "skyward · cost $1.60 so far, $36.00 an hour"] == written(
        *(cost(100.0 + n, 36.0) for n in range(100))
    )
    assert [] == written(*(cost(100.0 + n, 0.0) for n in range(100)))


def test_it_does_not_ask_for_what_it_passes_over() -> None:
    """Events that have no lines need not be made."""
    assert not {TaskStarted, Metric} & set(LogConsole.events)


def test_a_stream_that_is_gone_breaks_nothing() -> None:
    """A pipe whose reader has left is passed over."""
    stream = io.StringIO()
    console = LogConsole(stream)
    stream.close()
    console.handle(Log(line="x", node=0))
