"""The table of machine images that `sky images` prints, and the age by which it chooses some."""

from __future__ import annotations

import re
from collections.abc import Iterable

from skyward.errors import UsageError
from skyward.model.fields.span import span
from skyward.model.instances.machine_image import MachineImage

__all__ = ["HEADER", "age", "monthly_sum", "row"]

HEADER = ("HASH", "IMAGE", "PROVIDER", "REGION", "ARCHITECTURE", "STATE", "SIZE", "AT MOST", "AGE")

_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def row(image: MachineImage, *, now: float) -> tuple[str, ...]:
    """
    Describe an image in words, a column each, as `HEADER` names them.

    Args:
        image: The image.
        now: The time, in seconds since 1970.

    >>> row(MachineImage(id="ami-1", provider="aws", content_hash="4f", size_gb=30, made_at=0), now=90000)
    ('4f', 'ami-1', 'aws', '?', '?', 'ready', '30 GB', '?', '1 d')
    """
    return (
        image.content_hash,
        image.id,
        image.provider,
        image.region or "?",
        image.architecture or "?",
        image.state,
        "?" if image.size_gb is None else f"{image.size_gb:g} GB",
        "?" if image.monthly_cost is None else f"${image.monthly_cost:.2f}/month",
        "?" if image.made_at is None else span(now - image.made_at),
    )


def monthly_sum(images: Iterable[MachineImage]) -> str:
    """
    Return what images cost together at most; empty where that is unknown.

    >>> monthly_sum([MachineImage(id="ami-1", provider="aws", content_hash="4f", monthly_cost=1.5)])
    'They cost at most $1.50 a month.'
    """
    known = [image.monthly_cost for image in images if image.monthly_cost is not None]
    return f"They cost at most ${sum(known):.2f} a month." if known else ""


def age(words: str) -> float:
    """
    Read a length of time such as `30d`, in seconds.

    Args:
        words: A number and `s`, `min`, `h`, `d` or `w`.

    Raises:
        UsageError: If it is none.

    >>> age("30d"), age("1.5 h")
    (2592000.0, 5400.0)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|min|h|d|w)", words.strip())
    if found is None:
        raise UsageError(f"A length of time is a number and s, min, h, d or w, not {words!r}.", hint="Write 30d.")
    return float(found[1]) * _UNITS[found[2]]
