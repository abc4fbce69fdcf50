"""Whether a call that failed is tried again."""

from __future__ import annotations

import pytest

from skyward.plan.retry import Decision, Failure, decide


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
