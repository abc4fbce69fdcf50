"""How quick a line is follows from what is acknowledged while there is more to send."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from skyward.link.line_rate import LineRate, MeasuredRate, followed

RATES = st.floats(1e3, 1e9)


@pytest.mark.parametrize(
    ("rate", "measured", "expected"),
    [
        (None, MeasuredRate(5.0, 5.0), 5.0),
        (None, MeasuredRate(5.0, 5.0, starved=True), None),
        (100.0, MeasuredRate(20.0, 20.0), 80.0),
        (100.0, MeasuredRate(200.0, 200.0), 200.0),
        (100.0, MeasuredRate(2000.0, 2000.0), 400.0),
        (100.0, MeasuredRate(20.0, 20.0, starved=True), 100.0),
        (100.0, MeasuredRate(300.0, 300.0, starved=True), 300.0),
        (100.0, MeasuredRate(20.0, 1000.0, packing=0.9), 125.0),
        (100.0, MeasuredRate(20.0, 100.0, packing=0.9), 100.0),
        (100.0, MeasuredRate(150.0, 150.0, packing=0.9), 150.0),
    ],
)
def test_one_more_measurement_is_judged(rate: float | None, measured: MeasuredRate, expected: float | None) -> None:
    """A rise is followed at once, a fall within some; what did not fill the line shows only that it is quicker."""
    assert expected == followed(rate, measured)


@given(RATES, st.lists(RATES, min_size=40, max_size=60))
def test_a_rate_stays_between_those_that_are_measured(rate: float, seen: list[float]) -> None:
    """And reaches one that stays, from far above or below."""
    found: float | None = rate
    for measured in seen:
        found = followed(found, MeasuredRate(measured, measured))
        assert found is not None
        assert min(rate, *seen) * 0.999 <= found <= max(rate, *seen) * 1.001
    for _ in range(100):
        found = followed(found, MeasuredRate(rate, rate))
    assert found == pytest.approx(rate, rel=0.01)


def _send(line: LineRate, cells: int, rate: float, latency: float, *, more: int, began: float = 0.0) -> None:
    """Send cells of 1,000 bytes in one go; the last acknowledgements come with so many bytes under way."""
    under_way = 0
    marks = []
    for _ in range(cells):
        marks.append(line.mark(1000, under_way))
        under_way += 1000
    for number, mark in enumerate(marks, 1):
        under_way -= 1000
        line.delivered(1000, 1000)
        line.measure(mark, began + latency + number * 1000 / rate, under_way + more)


@pytest.mark.parametrize("latency", [0.0, 0.2])
def test_the_length_of_a_line_does_not_count(latency: float) -> None:
    """A little that goes a long way does not make a quick line a slow one."""
    line = LineRate()
    _send(line, 20, 1e5, latency, more=0)
    assert line.rate == pytest.approx(1e5)


def test_one_cell_tells_nothing() -> None:
    """Its time is that of the way there and back."""
    line = LineRate()
    for began in range(5):
        _send(line, 1, 1e5, 0.1, more=0, began=began)
    assert line.rate is None


def test_last_acknowledgement_tells_nothing() -> None:
    """The other end may have waited for more before it sent it."""
    line = LineRate()
    _send(line, 2, 1e5, 0.1, more=0)
    assert line.rate is None


def test_what_is_sent_after_a_rest_shows_no_slow_line() -> None:
    """Nothing was sent for a while because there was nothing."""
    line = LineRate()
    _send(line, 20, 1e5, 0.1, more=5000)
    line.starve(5000)
    mark = line.mark(1000, 5000)
    line.delivered(1000, 1000)
    line.measure(mark, 10.0, 5000)
    assert line.rate == pytest.approx(1e5)


def test_another_connection_begins_with_the_rate_of_the_one_before() -> None:
    """And no time in between counts."""
    line = LineRate()
    _send(line, 20, 1e5, 0.1, more=0)
    line.restart()
    _send(line, 20, 1e5, 0.1, more=0, began=100.0)
    assert line.rate == pytest.approx(1e5)
