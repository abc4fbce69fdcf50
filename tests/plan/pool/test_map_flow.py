"""How many items of a map may be under way: enough for the distance, and never more than the bounds."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given, strategies as st

from skyward.plan.pool.map_flow import (
    AROUND,
    FASTEST,
    GRANT,
    GROWTH,
    IN_FLIGHT,
    MARGIN,
    STRAGGLER,
    UNBOUNDED,
    Bounds,
    MapLoad,
    Pace,
    room,
    window,
)

MIB = 1 << 20


@pytest.mark.parametrize(
    ("slots", "seconds", "away", "expected"),
    [
        (4, None, 0.0, 8),
        (4, 4.0, 0.0, 9),
        (4, 4.0, 0.2, 9),
        (4, 0.1, 0.2, 25),
        (4, 0.01, 0.05, 52),
        (4, 0.002, 0.05, 228),
        (4, 0.00002, 0.0, 308),
        (4, 0.00002, 0.1, 6308),
        (4, 0.00002, 0.3, 8 + IN_FLIGHT),
        (4, 0.0, 0.0, 308),
        (8000, 60.0, 0.2, 16055),
    ],
)
def test_a_window_covers_the_distance(slots: int, seconds: float | None, away: float, expected: int) -> None:
    """It stays small for slow tasks, whatever the distance, and lets short ones fill it."""
    assert expected == window(slots, Pace(seconds=seconds, away=away, taken=10_000))


@given(st.integers(1, 4096), st.floats(1e-6, 100.0), st.floats(0.0, 2.0))
def test_slots_never_wait_for_the_distance(slots: int, seconds: float, away: float) -> None:
    """A slot has one call, and the way covers as many as it ends meanwhile; short of what one client can make."""
    covered = slots * (1 + away / seconds)
    most = window(slots, Pace(seconds=seconds, away=away, taken=10_000))
    assert most >= min(covered, 2 * slots + IN_FLIGHT, FASTEST * away)
    assert 2 * slots <= most <= 2 * slots + IN_FLIGHT
    assert most <= 2 * slots + slots / seconds * (MARGIN * away + AROUND) + 1


@given(st.integers(0, 10_000), st.floats(0.0, 2.0))
def test_a_window_grows_with_the_results_that_are_taken(taken: int, away: float) -> None:
    """The first ones may have been long away, for other reasons than the distance."""
    assert window(4, Pace(seconds=0.0, away=away, taken=taken)) <= 8 + GROWTH * taken


@st.composite
def loads(draw: st.DrawFn) -> MapLoad:
    """Draw what a map has under way."""
    pulled = draw(st.integers(0, 20_000))
    return MapLoad(
        slots=draw(st.integers(0, 1000)),
        pulled=pulled,
        running=draw(st.integers(0, pulled)),
        arguments=draw(st.integers(0, 600 * MIB)),
        held=draw(st.integers(0, 600 * MIB)),
    )


paces = st.builds(
    Pace,
    seconds=st.none() | st.floats(0.0, 100.0),
    away=st.floats(0.0, 2.0),
    argument=st.floats(0.0, 600.0 * MIB),
    result=st.floats(0.0, 600.0 * MIB),
    taken=st.integers(0, 10_000),
)


@given(loads(), paces, st.booleans())
def test_room_keeps_within_every_bound(load: MapLoad, pace: Pace, ordered: bool) -> None:  # drawn
    """With what it grants, unless nothing is there at all."""
    bounds = Bounds()
    count = room(load, pace, bounds, ordered=ordered)
    assert 0 <= count <= GRANT
    slots = max(1, load.slots)
    if not load.pulled:
        assert room(evolve(load, held=0), pace, bounds, ordered=ordered) >= 1
    if count and load.running:
        assert load.running + count <= window(slots, pace)
        assert load.pulled + count <= window(slots, pace) + STRAGGLER * slots
        assert load.arguments + count * pace.argument <= bounds.arguments
        expected = load.held + (load.running + count) * pace.result
        assert expected <= bounds.results or (load.held <= bounds.results and load.running + count <= slots)


@given(loads(), paces, st.booleans())
def test_less_under_way_is_never_less_room(load: MapLoad, pace: Pace, ordered: bool) -> None:  # drawn
    """An answer that comes, or a result that is taken, lets a map go on."""
    before = room(load, pace, Bounds(), ordered=ordered)
    if load.running:
        assert room(evolve(load, running=load.running - 1), pace, Bounds(), ordered=ordered) >= before
    assert room(evolve(load, held=load.held // 2, arguments=0), pace, Bounds(), ordered=ordered) >= before


@pytest.mark.parametrize(
    ("load", "pace", "expected"),
    [
        # Nothing is known of the first results: what can be worked on, and no more.
        (MapLoad(slots=4), Pace(), 4),
        (MapLoad(slots=4, pulled=4, running=4), Pace(), 0),
        # 100 MB each: as many as there are slots while none waits to be taken, and no more than two of them beside one.
        (MapLoad(slots=4, pulled=2, running=2), Pace(seconds=1.0, result=1e8), 2),
        (MapLoad(slots=4), Pace(seconds=10.0, result=1e9), 4),
        # Made in no time they would wait for the line: two of them are on their way, or one that is larger.
        (MapLoad(slots=4, pulled=1, running=1), Pace(seconds=0.01, result=1e8), 1),
        (MapLoad(slots=4), Pace(seconds=0.01, result=1e9), 1),
        (MapLoad(slots=4, pulled=1, held=10**9), Pace(seconds=0.01, result=1e9), 0),
        (MapLoad(slots=4, pulled=2, running=1, held=10**8), Pace(seconds=1.0, result=1e8), 0),
        # Those that take long are written to the disk in less time than they take: no slot is idle for them.
        (MapLoad(slots=4, pulled=2, running=1, held=10**8), Pace(seconds=10.0, result=1e8), 3),
        (MapLoad(slots=4, pulled=3, held=3 * 10**8), Pace(seconds=10.0, result=1e8), 0),
        # One is always let through.
        (MapLoad(slots=4), Pace(seconds=1.0, argument=1e9), 1),
        # Also beside results that were not taken yet, which are another bound's.
        (MapLoad(slots=4, pulled=2, held=100), Pace(seconds=1.0, argument=1e9), 1),
        # Of small ones every slot has one, however many slots there are.
        (MapLoad(slots=1000, pulled=960, running=960), Pace(seconds=60.0, result=2e6), 40),
        # The pool's own setting sends more of them ahead.
        (MapLoad(slots=4, ahead=32, pulled=30, running=30, answered=1), Pace(seconds=4.0, taken=1), 11),
        # Results of an earlier map were small, those of this one may be large: it has as many as were seen.
        (MapLoad(slots=4, pulled=4, running=4), Pace(seconds=1e-3, away=0.1, result=1.0, taken=4), 0),
        (MapLoad(slots=4, pulled=4, running=4), Pace(seconds=1e-3, away=0.1, result=1.0, taken=40), 36),
        (
            MapLoad(slots=4, pulled=4, running=3, held=1, answered=1),
            Pace(seconds=1e-3, away=0.1, result=1.0, taken=4),
            21,
        ),
        # A pool without nodes, for now.
        (MapLoad(slots=0), Pace(), 1),
    ],
)
def test_room_by_bytes(load: MapLoad, pace: Pace, expected: int) -> None:
    """Results and arguments are bounded by what is expected of them."""
    assert expected == room(load, pace, Bounds(), ordered=True)


def test_a_list_holds_all_results_anyway() -> None:
    """They bound nothing."""
    bounds = Bounds(results=UNBOUNDED)
    assert 8 == room(MapLoad(slots=4, held=10**12), Pace(result=1e9), bounds, ordered=False)


def test_results_that_wait_for_a_slow_one_are_bounded_by_count() -> None:
    """Slots go on beside it for as long as other calls take sixteen times."""
    pace = Pace(seconds=1.0)
    held = window(4, pace) + 4 * STRAGGLER
    assert 1 == room(MapLoad(slots=4, pulled=held - 1, running=1), pace, Bounds(), ordered=True)
    assert 0 == room(MapLoad(slots=4, pulled=held, running=1), pace, Bounds(), ordered=True)
