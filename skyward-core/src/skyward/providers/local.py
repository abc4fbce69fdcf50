"""The provider that is always there: nodes on this machine, each a process tree of its own."""

from __future__ import annotations

import os
import platform
import secrets
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from skyward import private
from skyward.hookspecs import hookimpl
from skyward.model.fields.setting import suggesting
from skyward.model.instances.machine import Instance, LocalAddress, ProviderFacts
from skyward.model.instances.offer import Offer

if TYPE_CHECKING:
    from skyward.model.instances.cluster import Cluster
    from skyward.model.instances.machine import LaunchRequest
    from skyward.model.spec.spec import Spec


@suggesting
@frozen
class Local:
    """
    Run nodes on this machine, without renting or installing anything.

    Each node is a process tree with a directory and a Unix socket of its own; it is gone with the pool.
    Nodes share the machine's processors and memory: four nodes here are for trying things out, not for speed.

    >>> import skyward as sky
    >>> sky.Local()
    Local()
    """

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: nothing is billed, and nodes reach each other on the loopback address."""
        # Asking costs nothing, and the cache may be shared with another machine.
        return ProviderFacts(name="local", ends_own_bill=True, offers_ttl_s=0, rents=False)

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        """Offer this machine as it is."""
        return (_this_machine(),)

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> str:
        """Choose the directory that the pool's nodes will live in; it is made with the first of them."""
        return str(_pool_directory(cluster.pool_id))

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str) -> Sequence[Instance]:
        """Return each node a directory of its own."""
        return [
            Instance(
                id=f"node-{node}-{request.token[-6:]}",
                node=node,
                provider="local",
                address=LocalAddress(str(Path(infra) / f"node-{node}-{request.token[-6:]}")),
                instance_type=request.cluster.offer.instance_type,
                ip="127.0.0.1",
                private_ip="127.0.0.1",
            )
            for node in request.nodes
        ]

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: str) -> Sequence[Instance]:
        """List the nodes whose directories are there."""
        return [
            Instance(id=path.name, node=int(path.name.split("-")[1]), provider="local", address=LocalAddress(str(path)))
            for path in _node_directories(infra)
        ]

    @hookimpl
    async def skyward_terminate(self, infra: str, ids: Sequence[str]) -> None:
        """Remove the nodes' directories; their processes have ended with their agents."""
        for directory in ids:
            private.remove(Path(infra) / directory)

    @hookimpl
    async def skyward_release(self, infra: str) -> None:
        """Remove the pool's directory."""
        private.remove(infra)


def _node_directories(infra: str) -> list[Path]:
    return sorted(Path(infra).glob("node-*"))


def _this_machine() -> Offer:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return Offer(
        provider="local",
        instance_type=platform.node() or "this-machine",
        vcpus=float(os.cpu_count() or 1),
        memory_gb=round(memory, 1),
        on_demand_price=0.0,
    )


def _pool_directory(pool_id: str) -> Path:
    """Return a random directory name; the first node makes it, before the name appears in a command line."""
    return Path(tempfile.gettempdir()) / f"skyward-{pool_id}-{secrets.token_hex(4)}"
