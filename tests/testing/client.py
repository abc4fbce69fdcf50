"""A client of a rehearsal cloud, which asks by hooks alone."""

from __future__ import annotations

import asyncio
from typing import Any

from attrs import evolve

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.hookspecs import Cluster, Instance, InstanceState, LaunchRequest, Offer, Tags
from skyward.model.spec.spec import Spec
from skyward.testing import Fault, Rehearsal
from skyward.testing.market import offers

SMALL = offers()[0]


class Client:
    """Ask a rehearsal cloud on behalf of one pool, as core does."""

    def __init__(self, books: str, *faults: Fault, pool: str = "a1") -> None:
        self.cloud = Rehearsal(faults=faults, directory=books)
        self.cluster = Cluster(pool_id=pool, pool_name="train", spec=Spec(), offer=SMALL, provider="rehearsal", nodes=3)

    def ask(self, hook: str, **arguments: Any) -> Any:
        """Call a hook, and wait for its answer."""
        return asyncio.run(ProviderHandle(self.cloud).call(hook, timeout=20, **arguments))

    def launch(
        self, *nodes: int, token: str = "t1", offer: Offer = SMALL, spot: bool = False, tags: Tags | None = None
    ) -> list[Instance]:
        """Rent machines."""
        cluster = evolve(self.cluster, offer=offer)
        request = LaunchRequest(cluster=cluster, nodes=nodes or (0,), token=token, spot=spot)
        if tags is not None:
            request = evolve(request, tags=tags)
        machines: list[Instance] = self.ask("skyward_launch", request=request, infra=None)
        return machines

    def list(self) -> dict[str, InstanceState]:
        """List the pool's machines."""
        machines = self.ask("skyward_instances", cluster=self.cluster, infra=None)
        return {machine.id: machine.state for machine in machines}

    def end(self, *ids: str) -> None:
        """End machines; all that the account has if none is named."""
        named = ids or [machine.id for machine in self.cloud.machines()]
        self.ask("skyward_terminate", cluster=self.cluster, infra=None, ids=named)
