"""How much there is to do in a pool, estimated from a sample."""

from __future__ import annotations

import pytest

from skyward.plan.pool.durations import UNKNOWN, Durations
from skyward.plan.pool.scheduling import Scheduler
from skyward.plan.pool.workload import SAMPLE, Workload, estimate


def scheduler(nodes: int, calls: int, *, slots: int = 1, function: bytes = b"f") -> Scheduler:
    """Return a scheduler with calls that were assigned at 0 s."""
    made = Scheduler(None)
    for node in range(nodes):
        made.add_node(node, [(0, 0, slots)])
    for call in range(calls):
        made.submit(call, function)
    made.assign(now=0.0)
    return made


def test_there_is_nothing_to_do_in_a_pool_without_calls() -> None:
    """With and without nodes."""
    assert Workload() == estimate(scheduler(0, 0), 0.0) == estimate(scheduler(3, 0), 0.0)


def test_calls_are_expected_to_take_what_calls_of_their_function_took() -> None:
    """Those that run have done a part of it."""
    made = Scheduler()
    made.add_node(0, [(0, 0, 2)])
    made.durations.learn(b"f", 10.0)
    for call in range(5):
        made.submit(call, b"f")
    made.assign(now=0.0)
    assert Workload(queued=3, queued_seconds=30.0, running=2, remaining=(6.0, 6.0)) == estimate(made, 4.0)


def test_a_function_that_was_never_seen_to_end_takes_as_long_again_as_it_has_run() -> None:
    """What waits of it takes twice as long."""
    made = scheduler(2, 6)
    at_once = estimate(made, 0.0)
    assert (4, UNKNOWN) == (at_once.queued, pytest.approx(at_once.queued_seconds / 4))
    later = estimate(made, 50.0)
    assert ((50.0, 50.0), 400.0) == (later.remaining, later.queued_seconds)


def test_calls_that_wait_for_one_node_count() -> None:
    """Also for one that is not there yet."""
    made = Scheduler()
    made.submit(1, b"f", node=0)
    assert 1 == estimate(made, 0.0).queued


def test_calls_that_were_sent_ahead_wait() -> None:
    """In the lane of a busy worker."""
    made = Scheduler(4)
    made.add_node(0, [(0, 0, 1)])
    for call in range(4):
        made.submit(call, b"f")
    made.assign(now=0.0)
    assert made.queued < 3
    assert (3, 1) == (estimate(made, 0.0).queued, estimate(made, 0.0).running)


def test_the_estimate_of_a_large_pool_is_that_of_a_sample() -> None:
    """Scaled up."""
    found = estimate(scheduler(1000, 11_000), 10.0)
    assert 10_000 == found.queued
    assert 1000 == pytest.approx(found.running, rel=0.01)
    assert 200_000 == pytest.approx(found.queued_seconds)


@pytest.mark.parametrize(("nodes", "calls"), [(100, 10_000), (1000, 100_000), (4000, 400_000)])
def test_the_estimate_looks_at_no_more_than_a_sample(nodes: int, calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many nodes and calls there are."""
    made = scheduler(nodes, calls)
    looked: list[bytes] = []
    monkeypatch.setattr(Durations, "known", lambda self, function: looked.append(function))
    estimate(made, 10.0)
    assert len(looked) <= 3 * SAMPLE
