"""Whether writing to buckets goes on at a pool's end, and what to do when it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from attrs import evolve, frozen

__all__ = ["LastWrites", "WriteVerdict", "looked", "named"]

_SHOWN = 10


class WriteVerdict(Enum):
    """What to do now."""

    WAIT = "wait"
    """Writing goes on, or has not stood still for long."""
    WARN = "warn"
    """It has stood still for a while: the user is warned, once."""
    GIVE_UP = "give up"
    """It has stood still for longer than the machine is kept."""


@frozen(kw_only=True)
class LastWrites:
    """
    Hold what a node has not written to buckets, as it was last seen.

    Args:
        unwritten: Files by their volume.
        moved: Bytes that were read for it.
        errors: How often that failed.
        since: When something was last seen to be written.
        warned: Whether the user was warned since then.
    """

    unwritten: Mapping[str, Sequence[str]]
    moved: int
    errors: int
    since: float
    warned: bool = False


def looked(
    before: LastWrites | None, now: LastWrites, *, stalled: float, kept: float | None
) -> tuple[LastWrites, WriteVerdict]:
    """
    Compare what is left to write with what was left before.

    Bytes that are read while the store refuses them are no progress: each attempt reads a file again.

    Args:
        before: What was left at the look before; None at the first.
        now: What is left now, with the time.
        stalled: Seconds of standstill after which the user is warned.
        kept: Seconds for which the machine is kept after that; None for ever.

    >>> first = LastWrites(unwritten={"v": ["a"]}, moved=5, errors=0, since=0.0)
    >>> looked(first, evolve(first, since=70.0), stalled=60.0, kept=600.0)[1]
    <WriteVerdict.WARN: 'warn'>
    """
    if before is None or now.unwritten != before.unwritten:
        return now, WriteVerdict.WAIT
    if now.moved != before.moved and now.errors == before.errors:
        return now, WriteVerdict.WAIT
    still = now.since - before.since
    seen = evolve(now, since=before.since, warned=before.warned)
    if kept is not None and still >= stalled + kept:
        return seen, WriteVerdict.GIVE_UP
    if still >= stalled and not before.warned:
        return evolve(seen, warned=True), WriteVerdict.WARN
    return seen, WriteVerdict.WAIT


def named(unwritten: Mapping[str, Sequence[str]]) -> str:
    """
    Name files by their volumes.

    Args:
        unwritten: Files by their volume.

    >>> named({"the volume 'b' at /d": ["x", "y"]})
    "2 files of the volume 'b' at /d (x, y)"
    """
    parts = []
    for title, names in unwritten.items():
        shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
        parts.append(f"{len(names)} file{'' if len(names) == 1 else 's'} of {title} ({shown})")
    return " and ".join(parts)
