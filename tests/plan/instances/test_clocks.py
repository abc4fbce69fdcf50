"""
How far a clock is off is read from what was answered, and told where it matters.
"""

from __future__ import annotations

import pytest

from skyward.plan.instances.clocks import WRONG, ahead_of_reply, warning

EPOCH = "Thu, 01 Jan 1970 01:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "sent", "heard", "expected"),
    [
        ({"date": EPOCH}, 0.0, 1.0, 3600.0),
        ({"date": EPOCH}, 3600.0, 3600.0, 0.5),
        ({"date": EPOCH}, 8100.0, 8101.0, -4500.0),
        ({"date": EPOCH, "age": "60"}, 3660.0, 3661.0, 0.0),
        ({"date": EPOCH}, 0.0, 30.0, None),
        ({"date": EPOCH, "age": "nan"}, 0.0, 1.0, None),
        ({"date": EPOCH, "age": "old"}, 0.0, 1.0, None),
        ({"date": "yesterday"}, 0.0, 1.0, None),
        ({"date": ""}, 0.0, 1.0, None),
        ({}, 0.0, 1.0, None),
    ],
)
def test_a_reply_has_the_servers_clock(
    headers: dict[str, str], sent: float, heard: float, expected: float | None
) -> None:
    """Half way between question and answer; an answer that took long tells nothing, one that was kept is older."""
    assert expected == ahead_of_reply(headers, sent=sent, heard=heard)


@pytest.mark.parametrize(
    ("ahead", "words"),
    [
        (0.0, ""),
        (WRONG, ""),
        (-WRONG, ""),
        (4500.0, "This computer's clock is 1 h behind that of aws (4500 s): set it."),
        (-61.0, "This computer's clock is 1 min ahead of that of aws (61 s): set it."),
    ],
)
def test_a_difference_of_more_than_a_minute_is_a_warning(ahead: float, words: str) -> None:
    """In both directions."""
    assert warning(ahead, "aws").startswith(words)
    assert bool(words) is bool(warning(ahead, "aws"))
