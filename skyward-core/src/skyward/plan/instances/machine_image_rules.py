"""
Machine images: what one has to hold, which one to boot from, and which are meant.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from attrs import astuple

from skyward.model.instances.machine_image import MachineImage

if TYPE_CHECKING:
    from skyward.model.spec.image import Image
    from skyward.model.spec.op import Op

__all__ = ["bootable", "chosen", "content_hash"]


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
