"""
What a running function can ask about the place it runs in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import attrs
from attrs import field, frozen

from skyward.model.instances.lazy_peers import Peers

__all__ = ["AcceleratorInfo", "InstanceInfo", "NetworkInfo", "PeerInfo"]

T = TypeVar("T")


@frozen(kw_only=True)
class PeerInfo:
    """
    Describe one node of the pool to another.

    Args:
        node: Index of the node.
        private_ip: Address that the pool's other nodes reach it at.
        public_ip: Address that the client reaches it at, if it has one.

    >>> PeerInfo(node=1, private_ip="10.0.0.2").private_ip
    '10.0.0.2'
    """

    node: int = 0
    private_ip: str = ""
    public_ip: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return attrs.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PeerInfo:
        """Build one from what `to_dict` gave, ignoring unknown keys."""
        return cls(**_known(cls, data))


@frozen(kw_only=True)
class AcceleratorInfo:
    """
    Describe the accelerators of a node; all of them are of one type.

    Args:
        type: Name in the catalogue, such as `"H100"`.
        count: How many the node has.
        memory_gb: Memory of one, in GB; None where it is not known.
        is_trainium: Whether they are AWS Trainium and want the Neuron runtime.

    >>> AcceleratorInfo(type="H100", count=8, memory_gb=80.0).count
    8
    """

    type: str = ""
    count: float = 1
    memory_gb: float | None = None
    is_trainium: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return attrs.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AcceleratorInfo:
        """Build one from what `to_dict` gave, ignoring unknown keys."""
        return cls(**_known(cls, data))


@frozen(kw_only=True)
class NetworkInfo:
    """
    Describe the network that a pool's nodes reach each other through.

    Args:
        interface: Name of the interface, such as `"eth0"`; None where it is not known.
        bandwidth_gbps: Its bandwidth, in Gbit/s; None where it is not known.

    >>> NetworkInfo(interface="ens5", bandwidth_gbps=100.0).interface
    'ens5'
    """

    interface: str | None = None
    bandwidth_gbps: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return attrs.asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NetworkInfo:
        """Build one from what `to_dict` gave, ignoring unknown keys."""
        return cls(**_known(cls, data))


def _peers(given: Iterable[PeerInfo]) -> Sequence[PeerInfo]:
    """Return peers as a tuple, which is hashable; those that are only looked up when looked at as they are."""
    return given if isinstance(given, Peers) else tuple(given)


@frozen(kw_only=True)
class InstanceInfo:
    """
    Describe a place in a pool: its node, its rank, and the machine under it.

    Without arguments it is the one rank of a pool of one node, which is what a function sees that runs locally.

    Args:
        node: Index of the node, from 0.
        worker: Index of the rank within its node, from 0.
        total_nodes: How many nodes take part.
        workers_per_node: How many ranks each node has.
        head_addr: Address at which the other nodes reach the head node.
        head_port: Port on the head node that is kept free for frameworks to meet at.
        job_id: Identity of this use of the pool.
        broadcast: Number of the broadcast that the call is part of, the same on all ranks; 0 in other calls.
        peers: All nodes that take part, this one among them; in a pool of more than 32 nodes they are asked for when
            they are first looked at, which may take a round trip to the client.
        accelerators: How many accelerators this node has.
        total_accelerators: How many accelerators all nodes have.
        accelerator: What the accelerators are; None on a node without any.
        network: What the nodes reach each other through, as the node finds it.
        hostname: The machine's own name.
        id: The provider's name for the instance.
        provider: The provider's name.
        ip: Address that the client reaches the instance at.
        private_ip: Address that the other nodes reach the instance at.
        spot: Whether the provider may take the instance back.
        hourly_rate: What the instance costs, in USD an hour.
        on_demand_rate: What it would cost on demand, in USD an hour.
        instance_type: The provider's name for this kind of machine.
        region: Where the instance is.
        vcpus: Virtual processors of the instance.
        memory_gb: Main memory of the instance, in GB.
        gpu_count: How many GPUs the instance has.
        gpu_model: The GPU's name.
        gpu_vram_gb: Memory of one GPU, in GB.
        ssh_port: Port that the instance's SSH server is reached at.

    >>> info = InstanceInfo(node=1, worker=1, total_nodes=2, workers_per_node=2)
    >>> info.global_worker_index, info.total_workers, info.is_head
    (3, 4, False)
    """

    node: int = 0
    worker: int = 0
    total_nodes: int = 1
    workers_per_node: int = 1
    head_addr: str = "127.0.0.1"
    head_port: int = 0
    job_id: str = ""
    broadcast: int = 0
    peers: Sequence[PeerInfo] = field(default=(), converter=_peers)
    accelerators: float = 0
    total_accelerators: float = 0
    accelerator: AcceleratorInfo | None = None
    network: NetworkInfo = field(factory=NetworkInfo)
    hostname: str = ""
    id: str = ""
    provider: str = ""
    ip: str | None = None
    private_ip: str | None = None
    spot: bool = False
    hourly_rate: float | None = None
    on_demand_rate: float | None = None
    instance_type: str | None = None
    region: str | None = None
    vcpus: float | None = None
    memory_gb: float | None = None
    gpu_count: int = 0
    gpu_model: str | None = None
    gpu_vram_gb: float | None = None
    ssh_port: int = 22

    @property
    def network_interface(self) -> str | None:
        """Return the name of the interface that the nodes reach each other through; None where it is not known."""
        return self.network.interface

    @property
    def total_workers(self) -> int:
        """Return how many ranks take part, on all nodes together."""
        return self.total_nodes * self.workers_per_node

    @property
    def global_worker_index(self) -> int:
        """Return the place of this rank among all, from 0."""
        return self.node * self.workers_per_node + self.worker

    @property
    def is_head(self) -> bool:
        """Return whether this is the first of all ranks."""
        return self.global_worker_index == 0

    def __getstate__(self) -> dict[str, Any]:
        # As attrs gives it; peers that are yet to be looked up travel as the tuple that they are.
        return {name: getattr(self, name) for name in _names(type(self))} | {"peers": tuple(self.peers)}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name in _names(type(self)):
            if name in state:
                object.__setattr__(self, name, state[name])

    def to_dict(self) -> dict[str, Any]:
        """
        Return the fields as JSON can hold them.

        >>> InstanceInfo.from_dict(InstanceInfo(node=3).to_dict()).node
        3
        """
        data = attrs.asdict(self, filter=lambda attribute, _: attribute.name != "peers")
        data["peers"] = [peer.to_dict() for peer in self.peers]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> InstanceInfo:
        """Build one from what `to_dict` gave, ignoring keys that another version of us may have added."""
        fields = _known(cls, data)
        peers = fields.get("peers") or ()
        if not isinstance(peers, Peers):
            fields["peers"] = tuple(map(PeerInfo.from_dict, peers))
        if fields.get("accelerator") is not None:
            fields["accelerator"] = AcceleratorInfo.from_dict(fields["accelerator"])
        fields["network"] = NetworkInfo.from_dict(fields.get("network") or {})
        return cls(**fields)


def _names(cls: type[attrs.AttrsInstance]) -> Iterator[str]:
    return (attribute.name for attribute in attrs.fields(cls))


def _known(cls: type[T], data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of data that the class has a field for."""
    return {name: data[name] for name in cls.__slots__ if name in data}  # type: ignore[attr-defined]
