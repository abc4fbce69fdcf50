"""What an agent asks for, made into the request for a pool that ends by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from attrs import asdict, evolve, frozen

from skyward.errors import ConfigError, UsageError
from skyward.model.fields.setting import nearest
from skyward.model.spec.image import Image
from skyward.plan.config.named_pools import NamedPool
from skyward.plan.config.request import Request, request

__all__ = ["Order", "provider_named", "request_of"]


@frozen(kw_only=True)
class Order:
    """
    Hold what an agent says about machines; None leaves it to Skyward.

    Args:
        pool: A pool of `skyward.toml`, which says all the rest.
        provider: Name of a provider.
        accelerator: Such as `"A100:8"`.
        nodes: How many machines.
        vcpus: Virtual CPUs of each, at least.
        memory_gb: Main memory of each, at least.
        machine: The provider's name of a kind of machine.
        region: Where.
        allocation: `"spot"`, `"on-demand"` and their like.
        max_hourly_cost: USD an hour for each machine.
        timeout: Seconds after which each machine ends.
        pip: Packages that they have.
    """

    pool: str | None = None
    provider: str | None = None
    accelerator: str | None = None
    nodes: int | None = None
    vcpus: float | None = None
    memory_gb: float | None = None
    machine: str | None = None
    region: str | None = None
    allocation: str | None = None
    max_hourly_cost: float | None = None
    timeout: float | None = None
    pip: tuple[str, ...] = ()

    def settings(self) -> dict[str, Any]:
        """
        Return what was said besides the pool and the provider.

        >>> Order(provider="aws", nodes=2).settings()
        {'nodes': 2}
        """
        rest = asdict(self, filter=lambda about, value: about.name not in ("pool", "provider"))
        return {name: value for name, value in rest.items() if value not in (None, ())}


def provider_named(name: str, known: Mapping[str, Any], allowed: Collection[str]) -> str:
    """
    Return a provider's name as it is registered.

    Args:
        name: As it was written, in letters of any size.
        known: The providers that are installed.
        allowed: The names of those that may be used, in small letters.

    Raises:
        ConfigError: If there is none, or it may not be used.

    >>> provider_named("aws", {"AWS": object}, {"aws"})
    'AWS'
    """
    found = next((each for each in known if each.lower() == name.lower()), None)
    if found is None:
        usable = sorted(each for each in known if each.lower() in allowed)
        close = nearest(name, usable)
        hint = f"Did you mean {close!r}?" if close else f"There are: {', '.join(usable) or 'none'}."
        raise ConfigError(f"There is no provider {name!r}.", hint=hint)
    if found.lower() not in allowed:
        raise ConfigError(
            f"The provider {found!r} is not allowed to this server.",
            hint=f"Only its user can allow it: skyward-mcp --provider {found.lower()}",
        )
    return found


def request_of(
    order: Order,
    *,
    label: str,
    budget: float,
    lease: float | None,
    provider_of: Callable[[str], Any],
    named: Callable[[str], NamedPool],
) -> Request:
    """
    Return the request for a pool that costs no more than it was granted, and leaves nothing rented.

    Args:
        order: What was asked for.
        label: What the pool is called.
        budget: What it may cost, in USD.
        lease: Seconds that it may go on without this server; None ends it with the server.
        provider_of: Called with a provider's name; returns one.
        named: Called with the name of a pool; returns what `skyward.toml` says.

    Raises:
        ConfigError: If it makes no sense, or the file has the machines outlive their program without limit.
    """
    if order.pool is not None:
        if given := [*(["provider"] if order.provider else []), *order.settings()]:
            raise UsageError(
                f"pool={order.pool!r} is described in skyward.toml, and {', '.join(given)} cannot be said as well.",
                hint="Leave out the pool or the rest.",
            )
        made = request(name=order.pool, named=named)
    elif order.provider is not None:
        keywords = order.settings()
        if order.pip:
            keywords["image"] = Image(pip=keywords.pop("pip"))
        made = request((), {**keywords, "provider": provider_of(order.provider)})
    else:
        raise UsageError("Neither provider nor pool was said.", hint="Ask for offers; each names its provider.")
    if endless := [spec for spec in made.specs if not spec.ttl]:
        raise ConfigError(
            f"pool {order.pool!r} has no ttl= in {len(endless)} of its specs: its machines would outlive this server.",
            hint="Remove that from skyward.toml.",
        )
    asked = made.options.budget
    options = evolve(
        made.options,
        label=label,
        budget=budget if asked is None else min(asked, budget),
        lease=lease,
        linger=0.0,
        warm_image=False,
        console="silent",
        on_event=None,
    )
    return evolve(made, name=label, options=options)
