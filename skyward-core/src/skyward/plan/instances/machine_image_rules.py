"""
Machine images: what one has to hold, which one to boot from, which are meant, how they are shown.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attrs import astuple

from skyward.errors import UsageError
from skyward.model.instances.machine_image import MachineImage
from skyward.plan.instances.owned_instances import span

if TYPE_CHECKING:
    from skyward.model.spec.image import Image
    from skyward.model.spec.op import Op

__all__ = ["HEADER", "age", "bootable", "chosen", "content_hash", "monthly_sum", "row"]

HEADER = ("HASH", "IMAGE", "PROVIDER", "REGION", "ARCHITECTURE", "STATE", "SIZE", "AT MOST", "AGE")

_UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}


def content_hash(image: Image, ops: Sequence[Op]) -> str:
    """
    Name what a machine holds that was made ready.

    Args:
        image: What its environment has to hold.
        ops: What plugins add.

    >>> from skyward.model.spec.image import Image
    >>> image = Image(pip=["torch"])
    >>> content_hash(image, ()) == image.content_hash()
    True
    """
    if not ops:
        return image.content_hash()
    added = json.dumps([[type(op).__name__, *map(str, astuple(op))] for op in ops])
    return f"{image.content_hash()}-{hashlib.sha256(added.encode()).hexdigest()[:8]}"


def bootable(images: Iterable[MachineImage], wanted: str) -> MachineImage | None:
    """
    Return the image to boot from, the newest of those that hold what is wanted; None if there is none.

    Args:
        images: Those from which the machines in question can boot.
        wanted: The content hash.

    >>> old, new = (MachineImage(id=f"ami-{at}", provider="aws", content_hash="4f", made_at=at) for at in (1, 2))
    >>> bootable([new, old], "4f") == new, bootable([new, old], "5e")
    (True, None)
    """
    ready = [image for image in images if image.content_hash == wanted and image.state == "ready"]
    return max(ready, key=lambda image: (image.made_at or 0.0, image.id), default=None)


def chosen(
    images: Iterable[MachineImage], *, hashes: Iterable[str] = (), older_than: float | None = None, now: float
) -> list[MachineImage]:
    """
    Choose images.

    Args:
        images: What clouds list.
        hashes: Content hashes, or what they begin with up to a dash: plugins add a second part; none means all.
        older_than: Only those that were made longer ago, in seconds; one that does not say when is not meant then.
        now: The time, in seconds since 1970.
    """
    wanted = set(hashes)
    return [
        image
        for image in images
        if (not wanted or image.content_hash in wanted or image.content_hash.partition("-")[0] in wanted)
        and (older_than is None or (image.made_at is not None and now - image.made_at > older_than))
    ]


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
    Say what images cost together at most; empty where that is unknown.

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
