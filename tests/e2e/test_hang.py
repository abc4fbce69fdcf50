"""Broadcasts in which no rank gets any further."""

from __future__ import annotations

import itertools
import os
import signal
import threading

import pytest

import skyward as sky
from skyward.node.task.hang import checked_hang_timeout, watched


@sky.function
def waits(who: int, *, others_return: bool) -> None:
    """Wait in vain on one rank, while the others return, or wait elsewhere."""
    with watched(1.0, lambda: 0, "moved"):
        if sky.instance_info().global_worker_index == who:
            threading.Event().wait()
        elif not others_return:
            waits_elsewhere()


def waits_elsewhere() -> None:
    threading.Event().wait()


@sky.function
def moves(rounds: int) -> int:
    """Be far longer than the limit, while one rank makes a step at each look."""
    info, looked, turns = sky.instance_info(), threading.Semaphore(0), itertools.count()

    def steps() -> int:
        looked.release()
        return next(turns) if info.is_head else 0

    with watched(5.0, steps, "moved"):
        return sum(looked.acquire() for _ in range(rounds))


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1])
def test_a_broadcast_whose_other_rank_returned_ends_with_the_stack_of_the_one_that_waits(
    pool: sky.Pool, who: int
) -> None:
    """The head's board is there also when the head's part is over."""
    with pytest.raises(sky.HangError, match=rf"No rank of 2 moved for 1 s\.(.|\n)*rank {who}: .* in waits\b") as caught:
        waits(who, others_return=True) @ pool
    assert f"rank {1 - who}: returned" in str(caught.value)
    assert {who} == set(caught.value.stacks or ())
    assert [7, 7] == sky.function(lambda: 7)() @ pool


@pytest.mark.slow
def test_a_broadcast_whose_ranks_all_wait_ends_with_the_stacks_of_all(pool: sky.Pool) -> None:
    """Each where it is in its own code."""
    with pytest.raises(sky.HangError, match=r"rank 1: .* in waits_elsewhere") as caught:
        waits(0, others_return=False) @ pool
    assert {0, 1} == set(caught.value.stacks or ())


@sky.function
def is_stopped(who: int) -> None:
    """Be stopped on one rank, so that nothing in its process goes on, while the others wait."""
    with watched(1.0, lambda: 0, "moved"):
        if sky.instance_info().global_worker_index == who:
            os.kill(os.getpid(), signal.SIGSTOP)
        waits_elsewhere()


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_whose_process_is_stopped_is_not_needed_for_the_verdict(pool: sky.Pool, who: int) -> None:
    """Not even the head's; the pool goes on with another process."""
    with pytest.raises(sky.HangError, match=rf"rank {1 - who}: .* in waits_elsewhere") as caught:
        is_stopped(who).with_timeout(40) @ pool
    assert f"rank {who}: does not answer" in str(caught.value)
    assert {1 - who} == set(caught.value.stacks or ())
    assert [7, 7] == sky.function(lambda: 7)() @ pool


@pytest.mark.slow
def test_one_rank_that_moves_keeps_all_alive(pool: sky.Pool) -> None:
    """Five seconds are the limit, and sixteen looks take eight."""
    assert [16, 16] == moves(16) @ pool


def test_a_call_that_is_no_broadcast_is_not_watched(pool: sky.Pool) -> None:
    """It has no other rank to wait for."""

    def alone() -> list[str]:
        with watched(1.0, lambda: 0, "moved"):
            return [thread.name for thread in threading.enumerate() if thread.name == "skyward-hang"]

    assert [] == sky.function(alone)() >> pool


@pytest.mark.parametrize("value", [0, -1, True, "60", float("nan")])
def test_what_is_no_time_is_refused(value: object) -> None:
    """With the name of the parameter."""
    with pytest.raises(sky.ConfigError, match="hang_timeout must be a number of seconds above 0, not "):
        checked_hang_timeout(None, None, value)
