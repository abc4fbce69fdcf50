"""
A machine image: what machines boot from that were made ready before, as a provider keeps it.
"""

from __future__ import annotations

from typing import Literal, cast

from attrs import field, frozen

from skyward.model.fields.setting import choice, text

__all__ = ["MachineImage", "MachineImageState"]

MachineImageState = Literal["pending", "ready", "failed"]
"""Whether machines can boot from it: not yet, now, or never."""


def _id(value: str) -> str:
    """Return the provider's name for an image, checked."""
    return text(value, "id")


def _content_hash(value: str) -> str:
    """Return what an image was made to hold, checked."""
    return text(value, "content_hash")


def _state(value: str) -> MachineImageState:
    """Return the state of an image, checked."""
    return cast("MachineImageState", choice(value, "state", ("pending", "ready", "failed")))


@frozen(kw_only=True)
class MachineImage:
    """
    Describe a machine image that was made of a machine of ours.

    Args:
        id: The provider's name for it, by which machines boot from it and it is deleted.
        provider: The provider's name.
        content_hash: What machines that boot from it have: `Image.content_hash()` of their image, and what plugins add.
        state: Whether machines can boot from it.
        region: The only region it can be used in, as the provider calls it; None where it can be used anywhere.
        architecture: Of the machines that boot from it; None where the provider cannot say.
        made_at: When it was made, in seconds since 1970; None where the provider cannot say.
        size_gb: How large it is, in GB; None where the provider cannot say.
        monthly_cost: The most that keeping it costs, in USD per month; None where that is unknown.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> MachineImage(id="ami-0abc", provider="aws", content_hash="4f1e").state
    'ready'
    """

    id: str = field(converter=_id)
    provider: str
    content_hash: str = field(converter=_content_hash)
    state: MachineImageState = field(default="ready", converter=_state)
    region: str | None = None
    architecture: str | None = None
    made_at: float | None = None
    size_gb: float | None = None
    monthly_cost: float | None = None
