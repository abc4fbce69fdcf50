"""What holds for an API that speaks JSON over HTTP, for all of its callers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, field, frozen

from skyward.rest.rate_limit import Limit
from skyward.rest.reply import Meaning, Reply

__all__ = ["Service"]


def _limits(value: Mapping[str, Sequence[Limit]]) -> dict[str, tuple[Limit, ...]]:
    """Return limits by lane, as a copy."""
    return {lane: tuple(limits) for lane, limits in value.items()}


def _url(value: str) -> str:
    """Return an address without a slash at its end."""
    return value.rstrip("/")


@frozen(kw_only=True)
class Service:
    """
    Say what holds for an API, for all of its callers.

    Args:
        provider: The provider's name in errors, such as `"digitalocean"`.
        title: The company's own name, such as `"DigitalOcean"`.
        base_url: Where it is; plain HTTP only on this machine.
        url_variable: Environment variable that names another place, such as that of a test server; empty for none.
        limits: How many calls an account may make, by lane; `""` counts all.
        meaning: Says what a reply means; None leaves it to the status. It is asked about successes as well.
        timeout: Seconds to wait for a whole answer.
        largest: Bytes of the largest answer that is taken.
    """

    provider: str
    title: str
    base_url: str = field(converter=_url)
    url_variable: str = ""
    limits: Mapping[str, Sequence[Limit]] = field(factory=dict, converter=_limits)
    meaning: Callable[[Reply], Meaning | None] = lambda _reply: None
    timeout: float = 30.0
    largest: int = 16 * 1024 * 1024

    def located(self, environment: Mapping[str, str], endpoint: str | None = None) -> Service:
        """
        Return the same where the user says that it is.

        Args:
            environment: The variables.
            endpoint: The address that the user wrote; counts most.

        >>> service = Service(provider="x", title="X", base_url="https://x.example", url_variable="X_URL")
        >>> service.located({"X_URL": "http://127.0.0.1:1/"}).base_url
        'http://127.0.0.1:1'
        """
        return evolve(self, base_url=endpoint or environment.get(self.url_variable) or self.base_url)
