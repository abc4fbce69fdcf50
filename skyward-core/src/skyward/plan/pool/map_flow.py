"""
How many items of a map may be under way: enough that no slot waits for the distance, bounded by count and by bytes.

Flow control of one map, without clock or I/O.
The client's queue is to hold what the slots begin next, and what they begin while an answer and the next call travel;
everything beyond that is memory that is held for nothing.
"""

from __future__ import annotations

import math
import sys

from attrs import frozen

IN_FLIGHT = 8192
"""Calls beyond twice the slots that may be under way at once: 17,000 no-ops a second take 3,400 at 200 ms."""

FASTEST = 30_000.0
"""Calls a second that slots are fed at most: about twice what one client was measured to make and take."""

MARGIN = 2.0
"""Round trips of work that are under way: one, and as much again because calls differ, as for what waits at a slot."""

AROUND = 0.01
"""Seconds of work that are under way beyond those for the distance: threads of one machine wait so long at times."""

GROWTH = 4
"""
Calls for the distance that may be under way for each result that was taken.

What the first answers say of it is seldom right, and where nothing was taken yet the first one may be slow.
"""

STRAGGLER = 16
"""How many times longer than those around it a call may take before slots wait for it, where results have an order."""

GRANT = 64
"""Items that are pulled before the flow is looked at again."""

DISK = 100e6
"""Bytes of results a second that a disk takes beside all else."""

LINE = 1e9
"""Bytes of results a second that no client takes; slots that make more would wait for it all the same."""

UNBOUNDED = sys.maxsize
"""A bound that bounds nothing."""

_SMALL = 64
"""A result of at most this part of the bound on results is small beside it."""


@frozen(kw_only=True)
class Bounds:
    """
    What one map may hold on the client, in bytes; one argument may always be there, however large.

    Args:
        arguments: Arguments of calls under way.
        results: Results that were not taken yet: beyond it no more are asked for, and what comes all the same goes to
            the disk.
    """

    arguments: int = 256 << 20
    results: int = 256 << 20


@frozen(kw_only=True)
class Pace:
    """
    What was learnt of a map's calls; later maps of the same function begin with it.

    Args:
        seconds: For how long one runs; None before the first answer.
        away: Seconds that an answer takes beyond that, waiting aside.
        argument: Bytes of the arguments of one call, of the larger ones.
        result: Bytes of a result, of the larger ones.
        taken: How many results were taken.
    """

    seconds: float | None = None
    away: float = 0.0
    argument: float = 0.0
    result: float = 0.0
    taken: int = 0


@frozen(kw_only=True)
class MapLoad:
    """
    What a map has under way.

    Args:
        slots: Calls that the pool runs at once.
        pulled: Items that were pulled and whose results were not taken.
        running: Those of them whose call has no answer yet.
        arguments: Bytes of the arguments of running calls.
        held: Bytes of the results that were not taken, wherever they are.
        answered: Answers that came so far.
        ahead: Calls that are sent ahead to busy slots in any case, because the pool's `buffer` says so.
    """

    slots: int
    ahead: int = 0
    pulled: int = 0
    running: int = 0
    arguments: int = 0
    held: int = 0
    answered: int = 0


def window(slots: int, pace: Pace) -> int:
    """
    Count the calls that keep slots busy: two a slot, and those that are on their way.

    Args:
        slots: Calls that the pool runs at once.
        pace: What was learnt.

    >>> window(4, Pace(seconds=4.0, away=0.2, taken=100))
    9
    >>> window(4, Pace(seconds=0.01, away=0.2, taken=100))
    172
    >>> window(4, Pace(seconds=0.00002, away=0.2, taken=10_000))
    8200
    """
    if pace.seconds is None:
        return 2 * slots
    rate = min(slots / max(pace.seconds, 1e-9), FASTEST)
    distance = math.ceil(round(rate * (MARGIN * pace.away + AROUND), 6))
    return 2 * slots + min(IN_FLIGHT, distance, GROWTH * pace.taken)


def room(load: MapLoad, pace: Pace, bounds: Bounds, *, ordered: bool) -> int:
    """
    Count the items that may be pulled now.

    Args:
        load: What is under way.
        pace: What was learnt.
        bounds: What may be held.
        ordered: Whether results wait for those before them.

    >>> room(MapLoad(slots=4), Pace(), Bounds(), ordered=True)
    4
    >>> room(MapLoad(slots=4, pulled=9, running=9, answered=1), Pace(seconds=4.0, taken=1), Bounds(), ordered=True)
    0
    """
    slots = max(1, load.slots)
    most = window(slots, pace) + load.ahead
    # Results may be larger than those of earlier maps: until the first has come, no more are asked for than can be
    # worked on, or than were seen of this function.
    unknown = not load.answered and bounds.results != UNBOUNDED
    running = min(most, max(slots, pace.taken)) if unknown else most
    count = min(GRANT, running - load.running, most + STRAGGLER * slots * ordered - load.pulled)
    arguments = math.floor((bounds.arguments - load.arguments) / max(1.0, pace.argument))
    count = min(count, max(arguments, not load.running))
    if bounds.results != UNBOUNDED:
        expected = math.floor((bounds.results - load.held) / max(1.0, pace.result)) - load.running
        if _fills(slots, load, pace, bounds):
            expected = max(expected, slots - load.running)
        count = min(count, max(expected, not load.running and not load.held))
    return max(0, count)


def _fills(slots: int, load: MapLoad, pace: Pace, bounds: Bounds) -> bool:
    """Return whether no slot is to be idle for the size of results: that costs more than a result on the disk."""
    if pace.result * _SMALL <= bounds.results and load.held * 2 <= bounds.results:
        return True
    made = pace.result * slots
    seconds = pace.seconds or 0.0
    return (made <= DISK * seconds and load.held <= bounds.results) or (made <= LINE * seconds and not load.held)
