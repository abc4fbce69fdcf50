"""What holds for an API that speaks JSON over HTTP, for all of its callers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import field, frozen

from skyward.rest.rate_limit import Limit
from skyward.rest.reply import Meaning, Reply

__all__ = ["Service"]


def _limits(value: Mapping[str, Sequence[Limit]]) -> dict[str, tuple[Limit, ...]]:
    """Return limits by lane, as a copy."""
    return {lane: tuple(limits) for lane, limits in value.items()}


@frozen(kw_only=True)
class Service:
    """
    Say what holds for an API, for all of its callers.

    Args:
        provider: The provider's name in errors, such as `"digitalocean"`.
        title: The company's own name, such as `"DigitalOcean"`.
        base_url: Where it is, without a slash at the end; plain HTTP only on this machine.
        limits: How many calls an account may make, by lane; `""` counts all.
        meaning: Says what a reply means; None leaves it to the status. It is asked about successes as well.
        timeout: Seconds to wait for a whole answer.
        largest: Bytes of the largest answer that is taken.
    """

    provider: str
    title: str
    base_url: str
    limits: Mapping[str, Sequence[Limit]] = field(factory=dict, converter=_limits)
    meaning: Callable[[Reply], Meaning | None] = lambda _reply: None
    timeout: float = 30.0
    largest: int = 16 * 1024 * 1024
