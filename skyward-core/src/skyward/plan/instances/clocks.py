"""How far the clock of another machine is off."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from skyward.model.fields.span import span

__all__ = ["WRONG", "ahead", "ahead_of_reply", "warning"]

WRONG = 60.0
"""Seconds by which this computer's clock may differ from a cloud's without a word."""

_SLOW = 10.0


def ahead(sent: float, answered: object, heard: float) -> float:
    """
    Return by how many seconds another machine's clock is ahead of ours; 0 where it may be right.

    Args:
        sent: When it was asked, by our clock.
        answered: What it answered, if that makes sense.
        heard: When the answer was here, by our clock.

    >>> ahead(100.0, 3700.1, 100.2)
    3600.0
    >>> ahead(100.0, 100.15, 100.2)
    0.0
    """
    if not isinstance(answered, (int, float)) or not math.isfinite(answered) or sent <= answered <= heard:
        return 0.0
    return answered - (sent + heard) / 2


def ahead_of_reply(headers: Mapping[str, str], *, sent: float, heard: float) -> float | None:
    """
    Return by how many seconds a cloud's clock is ahead of ours, by what it answered.

    Args:
        headers: Of its reply, by their names in lower case; `Date` has whole seconds.
        sent: When it was asked, by our clock, in seconds since 1970.
        heard: When the reply was here.

    Returns:
        The seconds, precise to about one; None where the reply does not tell.

    >>> ahead_of_reply({"date": "Thu, 01 Jan 1970 01:00:00 GMT"}, sent=0.0, heard=1.0)
    3600.0
    >>> ahead_of_reply({"date": "soon"}, sent=0.0, heard=1.0) is None
    True
    """
    try:
        date = parsedate_to_datetime(headers.get("date", ""))
        # A reply from a cache is older than its date says.
        kept = float(headers.get("age") or 0.0)
    except (TypeError, ValueError, IndexError):
        return None
    if heard - sent > _SLOW or not math.isfinite(kept):
        return None
    then = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() + kept
    return then + 0.5 - (sent + heard) / 2


def warning(ahead: float, cloud: str) -> str:
    """
    Warn that this computer's clock is wrong; return nothing if it is not.

    Args:
        ahead: By how many seconds the cloud's clock is ahead.
        cloud: What the cloud is called.

    >>> warning(4500.0, "aws")
    "This computer's clock is 1 h behind that of aws (4500 s): set it. Machines' times are those of aws's clock."
    >>> warning(-30.0, "aws")
    ''
    """
    if abs(ahead) <= WRONG:
        return ""
    way = "behind" if ahead > 0 else "ahead of"
    return (
        f"This computer's clock is {span(abs(ahead))} {way} that of {cloud} ({abs(ahead):.0f} s): set it. "
        f"Machines' times are those of {cloud}'s clock."
    )
