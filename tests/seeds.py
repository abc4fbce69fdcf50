"""
Random seeds of tests: drawn anew for each run, printed, replayed, and kept for good once they failed.

    SEED=7 make slow              draw again what the run drew that printed `SEED=7`
    SEEDS=2466274646 make slow    have every seeded test use this one seed, which is in the name of a test that failed
    SHARE=0.2 make chaos          a fifth of all that is drawn, but something of each
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")

FAILED: Mapping[str, tuple[int, ...]] = {
    # 1573567330: a machine that was to be taken back was asked for twice.
    "bad days": (2466274646, 1573567330),
    # 537953959: a node's network that was no mapping was an AttributeError in the engine.
    "inputs of links": (537953959,),
}
"""Seeds that once failed, by what is drawn: they are part of every run."""


def announce() -> str:
    """Draw the seed of this run unless it is given, and say how to have it again."""
    os.environ.setdefault("SEED", str(random.randrange(2**32)))
    return f"SEED={os.environ['SEED']}"


def seeds(name: str, count: int) -> list[int]:
    """
    Return the seeds that a test is run with: those that failed once, and some drawn for this run.

    Args:
        name: What is drawn; each name has seeds of its own.
        count: How many are drawn.
    """
    if given := os.environ.get("SEEDS"):
        return [int(seed) for seed in given.split(",")]
    drawing = _drawing(name)
    return [*FAILED.get(name, ()), *(drawing.randrange(2**32) for _ in range(count))]


def some(name: str, cases: Sequence[T], least: float = 0) -> list[T]:
    """
    Return the cases that this run has: a share of them, drawn anew, in their order.

    Args:
        name: What is drawn.
        cases: All that `make everything` has.
        least: The smallest share of them that a run may have, between 0 and 1.
    """
    chosen = sorted(_drawing(name).sample(range(len(cases)), share(len(cases), least)))
    return [cases[number] for number in chosen]


def share(count: int, least: float = 0) -> int:
    """
    Return the part of a number of random events that this run has, at least one of any.

    Args:
        count: How many events `make everything` has.
        least: The smallest share of them that a run may have, between 0 and 1.
    """
    part = max(least, float(os.environ.get("SHARE", "1")))
    return min(count, max(1, math.ceil(count * part)))


def _drawing(name: str) -> random.Random:
    # A node that imports a module of tests draws as well, and uses nothing of it.
    announce()
    return random.Random(f"{os.environ['SEED']} {name}")
