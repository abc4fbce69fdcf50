"""Begin a pool with the machines of an earlier one that linger: find them, claim them, and give them to nodes."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward.blocking import in_thread
from skyward.engine.calls.batches import all_of
from skyward.engine.instances.adopted import Adopted
from skyward.engine.instances.blueprint import Blueprint, draw
from skyward.engine.instances.lingering_key import key_of, made_of
from skyward.engine.instances.lingering_records import LeftMachine, LeftPool, lingering, take, write
from skyward.engine.instances.lingering_release import release_overdue
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.rented import Rented
from skyward.errors import SkywardError
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.key_pair import KeyPair
from skyward.model.instances.machine import LaunchRequest, SSHAddress
from skyward.plan.instances.instance_events import Assign, LaunchAnswered, LaunchRequested
from skyward.plan.instances.lingering import Lingering, choose_lingering, claim_within
from skyward.ssh.visits import KeptVisit

if TYPE_CHECKING:
    from skyward.engine.guardian.durable_records import Records
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.engine.instances.regions import Regions
    from skyward.engine.nodes.lingering_host import Claim
    from skyward.model.spec.spec import Spec
    from skyward.plan.config.request import Request
    from skyward.plan.offers.choice import Candidate

__all__ = ["Adoption", "adopt"]

_log = logging.getLogger(__name__)


async def adopt(request: Request) -> Adopted | None:
    """
    Take the machines of an earlier pool that a new one may begin with.

    Args:
        request: What the new one is to be, with all that its specs leave to us filled in.

    Returns:
        The machines; None if there are none, or another program was faster.
    """
    if request.detached is not None:
        # Late, because few pools are attached, and one at home does not load what SSH needs.
        from skyward.engine.instances.takeover import take_over

        return await take_over(request.detached, request.specs[0])
    known = await in_thread(lingering)
    if not known:
        return None
    keys: dict[str, Spec] = {}
    for spec in request.specs:
        handle = ProviderHandle(spec.provider)
        if handle.facts.rents:
            source, key = await in_thread(key_of, handle, spec)
            await release_overdue(known, handle, spec, source)
            if spec.nodes.desired:
                keys.setdefault(key, spec)
    for about in choose_lingering(known, list(keys), now=time.time()):
        left = await in_thread(take, about)
        if left is None:
            continue
        if (adopted := await _claimed(about, left, keys[about.key], request)) is not None:
            return adopted
    return None


async def _claimed(about: Lingering, left: LeftPool, spec: Spec, request: Request) -> Adopted | None:
    """Take machines by a claim at themselves: a program with a copy of what was written down must not have them too."""
    # Late, because a pool at home does not load what SSH needs.
    from skyward.engine.nodes.lingering_host import claim

    key, visits = KeyPair.of(left.private_key), KeptVisit()
    fitting = [one for one in left.machines if _fits(one, about, spec, request)][: spec.nodes.desired]
    timeout = request.options.bootstrap_timeout or spec.image.bootstrap_timeout
    within = claim_within(ttl=spec.ttl or 0.0, bootstrap_timeout=timeout)
    claims: list[tuple[LeftMachine, Claim]] = []

    async def ask(machine: LeftMachine) -> None:
        assert isinstance(machine.instance.address, SSHAddress)
        claims.append((machine, await claim(machine.instance.address, machine.mark, within, visits)))

    # Of two programs, the one that has the first machine has them all.
    while fitting and not any(came == "claimed" for _, came in claims):
        await ask(fitting.pop(0))
    await all_of(map(ask, fitting))
    came = {machine.mark: outcome for machine, outcome in claims}
    machines = tuple(one for one in left.machines if came.get(one.mark) == "claimed")
    if not machines or "taken" in came.values():
        await visits.close()
        if claims and "taken" not in came.values():
            # They may answer another client. Their watchdogs end them, and then what they shared is released.
            await in_thread(write, evolve(about, key=""), left)
        _log.warning(
            "The machines of pool %r that waited at %s are not taken (%s), and others are rented.",
            about.pool_name,
            about.provider,
            ", ".join(f"{machine.instance.id}: {outcome}" for machine, outcome in claims) or "made of another image",
        )
        return None
    _log.info("lingering.claimed pool=%s machines=%d", about.pool_id, len(machines))
    return Adopted(pool_id=about.pool_id, key=key, spec=spec, machines=machines, shared=left.shared, visits=visits)


def _fits(machine: LeftMachine, about: Lingering, spec: Spec, request: Request) -> bool:
    """Return whether a machine is what this pool would make of it."""
    facts, offer = ProviderHandle(spec.provider).facts, machine.candidate.offer
    cluster = Cluster(
        pool_id=about.pool_id,
        pool_name=request.name,
        spec=spec,
        offer=offer,
        provider=facts.name,
        nodes=spec.nodes.desired,
        worker=request.options.workers,
        nodes_reach_each_other=facts.nodes_reach_each_other,
        joined=request.options.cluster,
    )
    try:
        return made_of(draw(cluster, offer)) == machine.made
    except SkywardError as error:
        _log.info("lingering.unfit machine=%s: %s", machine.instance.id, error)
        return False


class Adoption:
    """
    Give the machines of an earlier pool to the first nodes of a new one; lives in the engine's loop.

    Args:
        adopted: The machines.
        cluster: The new pool, whatever its offer.
        instances: Takes them as if they had just been rented.
        regions: What they share.
        records: What journal and guardian know.
        blueprint: Returns what becomes of the machines of an offer.
        request: Returns the request that would rent one.
    """

    def __init__(
        self,
        adopted: Adopted,
        cluster: Cluster,
        instances: PoolInstances,
        regions: Regions,
        records: Records,
        blueprint: Callable[[Any], Blueprint],
        request: Callable[[Blueprint, Candidate, Sequence[int], str], LaunchRequest],
    ) -> None:
        self._adopted = adopted
        self._cluster = cluster
        self._instances = instances
        self._regions = regions
        self._records = records
        self._blueprint = blueprint
        self._request = request

    def begin(self) -> Blueprint:
        """Continue with what the machines share, and return what becomes of the first: nothing has to be asked for."""
        machines = self._adopted.machines
        first = self._blueprint(machines[0].candidate.offer)
        offers = {one.candidate.offer.region: one.candidate.offer for one in machines}
        for region, infra in self._adopted.shared:
            offer = offers.get(region) or evolve(first.cluster.offer, region=region)
            self._regions.adopt(evolve(first.cluster, offer=offer), infra)
        return first

    async def give(self, nodes: Sequence[int], check: Callable[[int, float], None]) -> list[Rented]:
        """
        Assign machines to nodes, each its own; some may get none.

        Args:
            nodes: The nodes.
            check: Called with how many machines are given, and the highest price; raises if they are too expensive.
        """
        at = {machine.instance.node: machine for machine in self._adopted.machines if self._adopted.resumed}
        if at:
            given = [(node, at[node]) for node in nodes if node in at]
        else:
            given = list(zip(nodes, self._adopted.machines, strict=False))
        if not at:
            # Nodes that were left cost the same, attached or not; the meter stops a pool that cannot afford them.
            check(len(given), max((machine.candidate.price for _, machine in given), default=0.0))
        return await all_of(self._assign(node, machine) for node, machine in given)

    async def _assign(self, node: int, machine: LeftMachine) -> Rented:
        candidate, instance = machine.candidate, evolve(machine.instance, node=node)
        blueprint, token = self._blueprint(candidate.offer), secrets.token_hex(8)
        infra = await self._regions.shared(blueprint.cluster)
        self._records.ended(machine.token, instance.id)
        await self._records.asked(self._request(blueprint, candidate, [node], token), infra)
        cloud, at = self._cluster.pool_id, asyncio.get_running_loop().time()
        self._instances.send(LaunchRequested(token=token, cloud=cloud, nodes=(node,), rate=candidate.price, at=at))
        commands = self._instances.send(LaunchAnswered(token=token, instances=(instance,), at=at))
        assert any(isinstance(command, Assign) for command in commands)
        self._records.answered(token, (instance.id,))
        return Rented(
            instance=instance,
            candidate=candidate,
            blueprint=blueprint,
            infra=infra,
            token=token,
            at=at - max(0.0, time.time() - machine.rented_at),
            before=machine.mark,
            resumed=self._adopted.resumed.get(machine.mark),
        )
