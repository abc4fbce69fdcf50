"""
Rented machines, and what a provider tells about itself and them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from attrs import field, frozen

from skyward.model.setting import text, texts

if TYPE_CHECKING:
    from skyward.model.cluster import Cluster

__all__ = ["Address", "Instance", "InstanceState", "LaunchRequest", "LocalAddress", "ProviderFacts"]


class InstanceState(Enum):
    """What a provider says about a machine's life."""

    PENDING = "pending"
    """It was granted and does not run yet; it may have no address. Reported for one that runs, nobody ever dials it."""

    RUNNING = "running"
    """It runs and has an address. Reported too early, dialling it fails and is tried again."""

    ENDING = "ending"
    """It was told to end, by us or the provider, and may still be billed. Its node is replaced at once."""

    ENDED = "ended"
    """It is gone and costs nothing. Reported too early, it is forgotten and goes on being billed."""


def _directory(value: str) -> str:
    """Return a directory, checked."""
    return text(value, "directory")


def _name(value: str) -> str:
    """Return a provider's name, checked."""
    return text(value, "name")


def _regions(value: Iterable[str]) -> tuple[str, ...]:
    """Return the names of regions, checked."""
    return texts(value, "regions")


def _nodes(value: Iterable[int]) -> tuple[int, ...]:
    """Return indices of nodes as a tuple."""
    return tuple(value)


@frozen
class LocalAddress:
    """
    Say that a machine is this one, and where on it the node lives.

    Args:
        directory: Absolute path of a directory that the node has to itself; it is made where it is missing.

    >>> LocalAddress("/tmp/node-0").directory
    '/tmp/node-0'
    """

    directory: str = field(converter=_directory)


Address: TypeAlias = LocalAddress
"""How the client reaches a machine."""


@frozen(kw_only=True)
class Instance:
    """
    Describe a rented machine.

    Args:
        id: The provider's name for it, by which it is terminated.
        node: Index of the node it was rented for.
        provider: The provider's name.
        state: What the provider says about its life.
        address: How the client reaches it; None until it can be reached.
        instance_type: The provider's name for this kind of machine.
        region: Where it is, as the provider calls it.
        spot: Whether the provider may take it back.
        hourly_rate: What it costs, in USD per hour.
        on_demand_rate: What it would cost on demand, in USD per hour.
        ip: Address that the client reaches it at.
        private_ip: Address that the pool's other nodes reach it at.

    >>> Instance(id="i-0abc", node=0, provider="aws", state=InstanceState.PENDING).address is None
    True
    """

    id: str
    node: int
    provider: str
    state: InstanceState = InstanceState.RUNNING
    address: Address | None = None
    instance_type: str | None = None
    region: str | None = None
    spot: bool = False
    hourly_rate: float | None = None
    on_demand_rate: float | None = None
    ip: str | None = None
    private_ip: str | None = None


@frozen(kw_only=True)
class LaunchRequest:
    """
    Ask a provider for machines, one for each node named.

    Args:
        cluster: The pool they are for.
        nodes: Indices of the nodes, in the order in which the instances are to be returned.
        token: Names this request and no other: a repeated one with the same token must not rent twice.
        spot: Whether the machines may be taken back.
    """

    cluster: Cluster
    nodes: tuple[int, ...] = field(converter=_nodes)
    token: str
    spot: bool = False


@frozen(kw_only=True)
class ProviderFacts:
    """
    Say what holds for a provider, whatever is rented from it.

    Args:
        name: Its name in offers, events and errors: lower case, and the same for all values of its class.
        ends_own_bill: Whether a machine can end its own billing, without a credential of the account.
        billing_granularity_s: The shortest time that is billed, in seconds; None where nothing is billed.
        nodes_reach_each_other: Whether its machines have a network of their own between them.
        spot: Whether it sells machines that it may take back.
        regions: Where it sells, as it calls these places; empty where it has no regions.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> ProviderFacts(name="local", ends_own_bill=True).spot
    False
    """

    name: str = field(converter=_name)
    ends_own_bill: bool
    billing_granularity_s: float | None = None
    nodes_reach_each_other: bool = True
    spot: bool = False
    regions: tuple[str, ...] = field(default=(), converter=_regions)
