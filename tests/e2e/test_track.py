"""Loops of tasks that say how far they are."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import skyward as sky
from tests.waiting import until


@sky.function
def train(epochs: int) -> int:
    done = 0
    for _ in sky.track(range(epochs)):
        time.sleep(0.01)
        done += 1
    return done


@sky.function
def searches() -> int:
    for number in sky.track((number for number in range(100)), label="search"):
        if number == 7:
            return number
    return -1


@pytest.fixture(scope="module")
def told() -> Iterator[tuple[sky.Pool, list[sky.Progress]]]:
    """Open a pool of two nodes, and keep what is reported."""
    heard: list[sky.Progress] = []
    with sky.Compute(nodes=2, console="silent", logging=False).on(sky.Progress, heard.append) as pool:
        yield pool, heard


def test_a_loop_is_reported_from_its_beginning_to_its_end(told: tuple[sky.Pool, list[sky.Progress]]) -> None:
    """Under the function's name, now and then."""
    pool, heard = told
    assert train(60) >> pool == 60
    until(lambda: (60, 60) in {(one.done, one.total) for one in heard})
    seen = [(one.done, one.total) for one in heard if one.label == "train"]
    assert seen[0] == (0, 60)
    assert seen[-1] == (60, 60)
    assert 3 <= len(seen) <= 12
    assert seen == sorted(seen)


def test_each_rank_has_a_bar(told: tuple[sky.Pool, list[sky.Progress]]) -> None:
    """In a broadcast."""
    pool, heard = told
    assert train(3) @ pool == [3, 3]
    until(lambda: {"train 0", "train 1"} <= {one.label for one in heard if (one.done, one.total) == (3, 3)})


def test_a_loop_that_is_left_says_how_far_it_came(told: tuple[sky.Pool, list[sky.Progress]]) -> None:
    """Of how many is not known of a generator."""
    pool, heard = told
    assert searches() >> pool == 7
    until(lambda: [(0, None), (7, None)] == [(one.done, one.total) for one in heard if one.label == "search"])


def test_outside_a_task_it_is_the_loop_alone() -> None:
    """As in `.local()`."""
    assert train.local(2) == 2
