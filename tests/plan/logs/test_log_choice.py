"""Which lines of a log are wanted."""

from __future__ import annotations

from datetime import datetime

import pytest

from skyward.errors import UsageError
from skyward.plan.logs.log_choice import LogChoice, moment

LINE = {"n": 1, "t": 100.0, "k": "line", "node": 2, "task": "7", "text": "hi"}
CALLS = {"n": 2, "t": 100.0, "k": "calls", "fn": ["f"], "rows": [[7, 1, 0, 2, 1, 1, 1, 0], [8, 1, 0, 3, 1, 1, 1, 0]]}
EVENT = {"n": 3, "t": 100.0, "k": "event", "event": "ClusterReady", "say": "ready"}


@pytest.mark.parametrize(
    ("choice", "wanted"),
    [
        (LogChoice(), [True, True, True]),
        (LogChoice(node=2), [True, True, False]),
        (LogChoice(node=3), [False, True, False]),
        (LogChoice(task="7"), [True, True, False]),
        (LogChoice(task="7", node=3), [False, False, False]),
        (LogChoice(since=100.0), [True, True, True]),
        (LogChoice(since=100.1), [False, False, False]),
    ],
)
def test_lines_are_chosen(choice: LogChoice, wanted: list[bool]) -> None:
    """By node, call and time, which all have to fit."""
    assert wanted == [choice.wants(found) for found in (LINE, CALLS, EVENT)]


@pytest.mark.parametrize(
    ("words", "found"),
    [("10m", 400.0), ("90 s", 910.0), ("0.5h", -800.0), ("1d", 1000.0 - 86400), ("1970-01-01T00:00:07Z", 7.0)],
)
def test_a_time_is_read(words: str, found: float) -> None:
    """As a length before now, or a date."""
    assert found == moment(words, 1000.0)


def test_a_date_without_a_zone_is_one_here() -> None:
    """It is what people read on their clock."""
    assert datetime(2026, 3, 1, 12).astimezone().timestamp() == moment("2026-03-01T12:00", 0.0)


@pytest.mark.parametrize("words", ["", "soon", "10", "-5m", "2026-13-01", "10 parsecs"])
def test_no_time_is_refused(words: str) -> None:
    """With what to write."""
    with pytest.raises(UsageError, match="Write 10m"):
        moment(words, 0.0)
