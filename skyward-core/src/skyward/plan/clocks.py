"""How far the clock of another machine is off."""

from __future__ import annotations

import math


def ahead(sent: float, told: object, heard: float) -> float:
    """
    Tell by how many seconds another machine's clock is ahead of ours; 0 where it may be right.

    Args:
        sent: When it was asked, by our clock.
        told: What it answered, if that makes sense.
        heard: When the answer was here, by our clock.

    >>> ahead(100.0, 3700.1, 100.2)
    3600.0
    >>> ahead(100.0, 100.15, 100.2)
    0.0
    """
    if not isinstance(told, (int, float)) or not math.isfinite(told) or sent <= told <= heard:
        return 0.0
    return told - (sent + heard) / 2
