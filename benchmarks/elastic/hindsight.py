"""
The best that is possible for a load that is known in advance: what it costs at least, and how long calls wait at least.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right, insort

from elastic.loads import Load
from elastic.simulation import Market, Run


def least_cost(load: Load, market: Market, floor: int) -> float:
    """
    Return what a load costs at least in USD, however long its calls may wait.

    One machine boots at least, and all of them together run for as long as the calls take, or the pool is open.

    Args:
        load: What is to be done.
        market: What machines are like.
        floor: Machines that there are always.
    """
    work = sum(call.seconds for call in load.calls) / market.slots + market.boot
    return max(work, floor * load.until) * market.rate / 3600


def clairvoyant(load: Load, market: Market, floor: int, most: int) -> Run:
    """
    Run a load with a pool that knows it.

    Calls begin in the order in which they are sent, each as early as `most` machines allow, which is before the pool is
    open for `boot` seconds at the earliest; so no pool that keeps the order has them wait for less, in sum.
    Each goes to the machine that was busy last. A machine is asked for `boot` seconds before it is needed, and ended
    where the next call is further away than it takes to boot another one.

    Args:
        load: What is to be done.
        market: What machines are like.
        floor: Machines that there are always.
        most: Machines that there are at most.
    """
    slots = market.slots * most
    free: list[tuple[float, int]] = [(market.boot, slot) for slot in range(slots)]
    busy: list[list[tuple[float, float]]] = [[] for _ in range(most)]
    waits = []
    for call in load.calls:
        # The slot that became free last before the call, else the one that does first after it.
        at = bisect_right(free, (call.at, slots)) - 1
        since, slot = free.pop(max(at, 0))
        begin = max(call.at, since)
        waits.append(begin - call.at)
        busy[slot // market.slots].append((begin, begin + call.seconds))
        insort(free, (begin + call.seconds, slot))
    ended = max((end for each in busy for _, end in each), default=0.0)
    until = max(ended, load.until)
    lives = [
        life
        for number, each in enumerate(busy)
        for life in (_kept(sorted(each), market) if number >= floor else [(0.0, until)])
    ]
    return Run(tuple(lives), tuple(waits), _counted(lives), (), ended, 0)


def _kept(busy: list[tuple[float, float]], market: Market) -> list[tuple[float, float]]:
    """Return from when to when a machine is there that is busy at some times."""
    lives: list[tuple[float, float]] = []
    for begin, end in busy:
        if lives and begin - lives[-1][1] <= market.boot:
            lives[-1] = lives[-1][0], max(end, lives[-1][1])
        else:
            lives.append((begin - market.boot, end))
    return lives


def _counted(lives: list[tuple[float, float]]) -> tuple[tuple[float, int], ...]:
    """Return when the number of machines changed, and to how many."""
    changes = [(begin, 1) for begin, _ in lives] + [(end, -1) for _, end in lives]
    heapq.heapify(changes)
    counted, there = [(0.0, 0)], 0
    while changes:
        at, by = heapq.heappop(changes)
        there += by
        counted.append((at, there))
    return tuple(counted)
