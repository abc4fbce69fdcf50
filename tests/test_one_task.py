"""What a process has once is one task's at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import skyward as sky
from skyward.one_task import OneTask


def test_another_thread_is_told_to_come_alone() -> None:
    """It does not wait, and what it was refused stays with whose it is."""
    task = OneTask("JAX", "world")

    def enter() -> None:
        with task:
            raise AssertionError

    with ThreadPoolExecutor(1) as others, task:
        with pytest.raises(sky.UsageError, match=r"JAX has one world .* another task runs in this one") as refused:
            others.submit(enter).result()
        assert "concurrency=1" in str(refused.value)
        assert [True, False] == [task.is_here, others.submit(lambda: task.is_here).result()]


def test_the_next_task_has_it_after_one_that_failed() -> None:
    """In whatever thread."""
    task = OneTask("JAX", "world")

    def enter() -> bool:
        with task:
            return task.is_here

    with pytest.raises(ZeroDivisionError), task:
        raise ZeroDivisionError
    with ThreadPoolExecutor(1) as others:
        assert [False, True, True, False] == [task.is_here, enter(), others.submit(enter).result(), task.is_here]
