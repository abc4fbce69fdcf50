"""Whether a call that failed is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from skyward.errors import AccessDeniedError, NoSuchBucketError, StorageError, StorageUnavailableError
from skyward.model.spec.retry_setting import LONGEST, Retry
from skyward.plan.pool.retry_policy import (
    LONGEST_REPLACEMENT_PAUSE,
    Decision,
    Failure,
    decide,
    delay_before,
    launch_pause,
    replacement_pause,
    worth_another_start,
)


@pytest.mark.parametrize(
    ("failure", "cancelled", "retries", "interruptions", "expected"),
    [
        (Failure.FAILED, False, 0, 3, Decision(False, 0, 3)),
        (Failure.FAILED, False, 2, 3, Decision(True, 1, 3)),
        (Failure.NODE_LOST, False, 0, 3, Decision(True, 0, 2)),
        (Failure.NODE_LOST, False, 2, 0, Decision(False, 2, 0)),
        (Failure.FAILED, True, 2, 3, Decision(False, 2, 3)),
        (Failure.NODE_LOST, True, 2, 3, Decision(False, 2, 3)),
    ],
)
def test_failures_and_losses_are_counted_apart(
    failure: Failure, cancelled: bool, retries: int, interruptions: int, expected: Decision
) -> None:
    """A loss costs no retry, a failure no interruption, and what was cancelled ends."""
    assert decide(failure, cancelled=cancelled, retries=retries, interruptions=interruptions) == expected


@pytest.mark.parametrize(
    ("left", "expected"),
    [(3, Decision(True, 2, 0, 2.0)), (2, Decision(True, 1, 0, 6.0)), (1, Decision(True, 0, 0, 18.0))],
)
def test_each_delay_is_longer_than_the_last(left: int, expected: Decision) -> None:
    """By the factor that was asked for."""
    retry = Retry(3, delay=2, backoff=3, jitter=0)
    assert expected == decide(Failure.FAILED, cancelled=False, retries=left, interruptions=0, retry=retry)


@pytest.mark.parametrize("failure", [Failure.NODE_LOST, Failure.WORKER_SPENT])
def test_what_is_no_failure_of_the_call_waits_for_nothing(failure: Failure) -> None:
    """It is sent again at once, and costs none of its attempts."""
    made = decide(failure, cancelled=False, retries=2, interruptions=1, retry=Retry(2, delay=5))
    assert (True, 2, 0.0) == (made.again, made.retries, made.delay)


@given(
    failures=st.integers(1, 10_000),
    delay=st.floats(0, LONGEST),
    backoff=st.floats(1, 1e300),
    jitter=st.floats(0, 1),
    draw=st.floats(0, 1),
)
def test_delays_are_bounded(failures: int, delay: float, backoff: float, jitter: float, draw: float) -> None:
    """Whatever is asked for, however often a call failed."""
    retry = Retry(10_000, delay, backoff, jitter)
    assert 0.0 <= delay_before(retry, failures, draw) <= LONGEST


@pytest.mark.parametrize("kind", [StorageError, NoSuchBucketError, AccessDeniedError, StorageUnavailableError])
def test_a_volume_that_cannot_be_had_is_tried_once(kind: type[StorageError]) -> None:
    """The next machine has the same keys and the same store."""
    assert not worth_another_start(kind("There is no such bucket."), again=True)


@given(failures=st.integers(1, 10_000), draw=st.floats(0, 1), refused=st.booleans())
def test_a_pool_that_has_worked_goes_on_trying_with_bounded_pauses(failures: int, draw: float, refused: bool) -> None:
    """They grow, and are spread by a fifth; what the user asks for holds, but a pool never asks without any pause."""
    pause = launch_pause(failures, None, refused=refused, proven=True, draw=draw)
    assert 0.8 * 2.0 <= pause <= 1.2 * LONGEST_REPLACEMENT_PAUSE + 0.001
    assert pause <= replacement_pause(failures + 1, 1.0)
    assert 7.0 == launch_pause(failures, 7.0, refused=refused, proven=True, draw=draw)
    assert (0.0 if failures <= 3 else 1.0) == launch_pause(failures, 0.0, refused=refused, proven=True, draw=draw)
    assert 0.0 == launch_pause(0, 7.0, refused=refused, proven=True, draw=draw)
