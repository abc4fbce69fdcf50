"""Launch instances for the nodes of a pool: one offer after the other, until each node has one."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from skyward.engine.calls.batches import all_of
from skyward.engine.instances.adopted import Adopted
from skyward.engine.instances.adoption import Adoption
from skyward.engine.instances.blueprint import Blueprint, draw
from skyward.engine.instances.identity import CLIENT, owner
from skyward.engine.instances.launch_requests import LaunchRequests
from skyward.engine.instances.offer_queue import OfferQueue
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.regions import PROVIDER_TIMEOUT, Regions
from skyward.engine.instances.rented import Rented
from skyward.engine.pool.stopped_elsewhere import CallOff
from skyward.errors import (
    BudgetExceededError,
    CapacityError,
    ConfigError,
    CredentialsError,
    OfferError,
    PluginError,
    PoolEndedError,
    QuotaError,
    SkywardError,
)
from skyward.model.events import event as events
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import Instance, LaunchRequest
from skyward.model.instances.offer import Offer
from skyward.model.instances.tags import Tags
from skyward.plan.instances.lingering import check_budget
from skyward.plan.instances.owned_instances import forgotten
from skyward.plan.offers.choice import Candidate, must_be_spot
from skyward.plan.offers.cloud_disk import check_attachable
from skyward.registry import with_disks
from skyward.ssh.boot_wait import listening
from skyward.ssh.visits import KeptVisit, keeping

if TYPE_CHECKING:
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.guardian.durable_records import Records
    from skyward.engine.instances.machine_image_choice import MachineImages
    from skyward.engine.instances.pool_instances import PoolInstances
    from skyward.model.instances.machine_image import MachineImage
    from skyward.model.spec.options import Options

_log = logging.getLogger(__name__)

BATCH = 32
"""Machines that are asked for at once."""

SIDE_BY_SIDE = 4
"""Requests that are under way at once, while the cloud has all that it is asked for."""

LIFE = 3600.0
"""Seconds until a machine counts as forgotten on which its client wrote no later time; twice `ttl` if that is more."""

_NEXT_BEST = 2
"""Offers that are named beside the one that is taken."""

_WHATEVER_THE_IMAGE = (BudgetExceededError, CapacityError, QuotaError, CredentialsError, PoolEndedError)
"""Errors of a launch that another machine image would not change."""

_WHATEVER_THE_OFFER = (BudgetExceededError, ConfigError, CredentialsError, PluginError, PoolEndedError)
"""Errors of a launch that another offer would not change."""


class Launching:
    """
    Launch the instances of one pool at one cloud.

    Args:
        provider: Where they come from.
        cluster: The pool, whatever its offer.
        options: How long things may take.
        reporting: Where events go.
        machine_images: What they boot from.
        instances: Takes what is asked for, and what comes of it.
        regions: What they share, region by region.
        records: Let journal and guardian know of them.
        ranks: How many ranks each has to have; None for as many as those of the first offer.
        adopted: Machines of an earlier pool that the first nodes get.
    """

    def __init__(
        self,
        provider: ProviderHandle,
        cluster: Cluster,
        options: Options,
        reporting: Reporting,
        machine_images: MachineImages,
        instances: PoolInstances,
        regions: Regions,
        records: Records,
        *,
        ranks: int | None = None,
        adopted: Adopted | None = None,
    ) -> None:
        self._provider = provider
        self._machine_images = machine_images
        self._cluster = cluster
        self._spec = cluster.spec
        self._reporting = reporting
        self._ranks = ranks
        self.offers = OfferQueue(provider, cluster)
        self._options = options
        self.kept = KeptVisit()
        self._blueprints: dict[int, Blueprint] = {}
        self._regions = regions
        self._requests = LaunchRequests(
            provider,
            instances,
            regions,
            records,
            reporting.meter,
            timeout=options.provision_timeout or PROVIDER_TIMEOUT,
        )
        self._instances = instances
        self._records = records
        self._call_off = CallOff(cluster.pool_id, cluster.pool_name)
        self._looking: list[asyncio.Task[None]] = []
        self._adoption, self._adopted_billed = None, False
        if adopted is not None:
            self.kept, self._adopted_billed = adopted.visits, adopted.billed
            self._adoption = Adoption(adopted, cluster, instances, regions, records, self._blueprint, self._request)
        self.first: Blueprint

    @property
    def provider_name(self) -> str:
        """Return the provider's name."""
        return self._provider.name

    @property
    def life(self) -> float:
        """Return for how many seconds a machine counts as ours after its expiry was written."""
        return max(LIFE, 2 * max(self._spec.ttl or 0.0, self._options.lease or 0.0))

    @property
    def _expires(self) -> bool:
        """Return whether an expiry is written on machines: one that cannot be put off makes a living pool look dead."""
        return bool(self._spec.ttl) and self._provider.implements("skyward_renew")

    @property
    def billed(self) -> bool:
        """Return whether anything that is for sale costs money."""
        return self.offers.billed or self._adopted_billed

    @property
    def uncertain(self) -> bool:
        """Return whether machines may exist that no answer has named."""
        return self._records.uncertain

    async def open(self) -> None:
        """
        Ask for offers, and decide which is tried first.

        Raises:
            NoAvailableProviderError: If nothing meets the spec.
            ConfigError: If the spec asks for what cannot be.
        """
        check_attachable(self._spec.volumes, self._provider.name, self._provider.facts.disks, with_disks)
        self._records.guard()
        if self._adoption is not None:
            self.first = self._adoption.begin()
            if self.billed:
                self._records.write()
            return
        await self._provider.call("skyward_preflight", spec=self._spec, timeout=PROVIDER_TIMEOUT)
        tell = listening(lambda line: self._reporting.publish(events.Error(message=line)))
        with tell, keeping(self.kept):
            await self.offers.look()
        if wrong := await self._provider.measure_clock():
            _log.warning("%s", wrong)
        candidates = self.offers.candidates()
        if not candidates:
            raise self.offers.nothing()
        self.first = self._blueprint(candidates[0].offer)
        if self.billed:
            self._records.write()
            self._looking.append(asyncio.ensure_future(self._warn_of_orphans()))

    async def launch(
        self, nodes: Sequence[int], staying: Sequence[Instance], take: Callable[[int, Rented], None]
    ) -> dict[int, SkywardError]:
        """
        Launch an instance for each node.

        Args:
            nodes: The nodes.
            staying: The machines that the pool has already, which count for its share of spot.
            take: Called with each node and its machine, as soon as it is rented.

        Returns:
            The nodes that got none, and why.

        Raises:
            BudgetExceededError: If the budget does not pay for all of them.
        """
        given = await self._adopt(nodes, take)
        nodes, staying = [node for node in nodes if node not in given], [*staying, *given.values()]
        for candidate in self.offers.candidates()[:1]:
            self._afford(len(nodes), candidate.price, len(staying))
        total = len(nodes) + len(staying)
        spot = must_be_spot(
            self._spec.allocation, total=total, spot=sum(one.spot for one in staying), staying=len(staying)
        )
        share = self._spec.allocation.spot is not None
        failed: dict[int, SkywardError] = {}
        for market, group in ((True if share else None, nodes[:spot]), (False if share else None, nodes[spot:])):
            batches = deque(group[begin : begin + BATCH] for begin in range(0, len(group), BATCH))
            # The first one by itself: what it meets is known to the others.
            together = 1
            while batches:
                now = [batches.popleft() for _ in range(min(together, len(batches)))]
                if failed and self.offers.hopeless:
                    failed |= {node: self.offers.exhausted() for batch in now for node in batch}
                    continue
                for lacking in await all_of(self._fill(batch, take, spot=market) for batch in now):
                    failed |= lacking
                together = 1 if failed else SIDE_BY_SIDE
        return failed

    async def check_called_off(self, listed: Iterable[Instance] = ()) -> None:
        """
        Look whether another program has ended the pool; only what is billed is ended so.

        Args:
            listed: The pool's machines, as they were just listed.

        Raises:
            PoolEndedError: If it has.
        """
        if self.billed:
            self._call_off.check_listed(listed)
            await self._call_off.check()

    async def renew(self, ids: Iterable[str], life: float | None = None) -> None:
        """
        Write a later expiry on machines.

        Args:
            ids: The machines.
            life: Seconds until then; None for `life`.

        Raises:
            SkywardError: If the provider does not answer.
        """
        await self._provider.measure_clock()
        await self._regions.renew(ids, self._provider.now() + (life or self.life))

    async def close(self) -> None:
        """Close the connection that was kept for the first node, and cancel questions that are not answered yet."""
        for question in (*self._looking, *self._regions.checks):
            question.cancel()
        await self.kept.close()

    async def settle(self) -> None:
        """Remove the mark that another program ended the pool, once all that it asked for is done."""
        await self._call_off.close()

    async def _warn_of_orphans(self) -> None:
        """Log which instances of this user are orphans of dead clients; skipped where the provider does not answer."""
        try:
            owned = await self._provider.call("skyward_owned", timeout=PROVIDER_TIMEOUT)
        except SkywardError as error:
            _log.info("owned.failed provider=%s: %s", self._provider.name, error)
            return
        for warning in forgotten(owned or (), owner=owner(), now=self._provider.now()):
            _log.warning("%s", warning)

    async def _fill(
        self, nodes: Sequence[int], take: Callable[[int, Rented], None], *, spot: bool | None
    ) -> dict[int, SkywardError]:
        """Try one way to rent after the other until every node has a machine."""
        waiting, began = list(nodes), _now()
        if not self.offers.candidates(spot=spot):
            # All was refused, a while ago: there may be something else now.
            await self.offers.look()
        while waiting:
            candidates = self.offers.candidates(spot=spot, since=began)
            if not candidates:
                return dict.fromkeys(waiting, self.offers.exhausted())
            candidate, asked_at, image = candidates[0], _now(), None
            try:
                image = await self._machine_images.find(self._fallback(candidate.offer))
                got = await self._ask(candidate, waiting, image)
            except SkywardError as error:
                if image is not None and not isinstance(error, _WHATEVER_THE_IMAGE):
                    # The same offer is asked for again, without the image.
                    self._machine_images.drop(image, error)
                    continue
                if isinstance(error, _WHATEVER_THE_OFFER):
                    return dict.fromkeys(waiting, error)
                self.offers.refused(candidate, error, asked_at)
                if self.offers.hopeless:
                    return dict.fromkeys(waiting, self.offers.exhausted())
                continue
            self.offers.answered()
            asked = len(waiting)
            for rented in got:
                waiting.remove(rented.instance.node)
                take(rented.instance.node, rented)
            if waiting:
                lacking = CapacityError(f"It had {len(got)} of the {asked} machines asked for.")
                self.offers.refused(candidate, lacking, asked_at)
        return {}

    async def _ask(
        self, candidate: Candidate, nodes: Sequence[int], machine_image: MachineImage | None
    ) -> list[Rented]:
        """
        Ask for machines of one offer.

        Raises:
            SkywardError: If there are none; whatever was rented unseen has been found.
        """
        blueprint = self._fallback(candidate.offer)
        ranks = self._ranks or self.first.cluster.ranks_per_node
        if blueprint.cluster.ranks_per_node != ranks:
            raise OfferError(
                f"It would have {blueprint.cluster.ranks_per_node} ranks, and the pool's other nodes have {ranks}."
            )
        await self.check_called_off()
        await self._records.opening(blueprint.cluster)
        infra = await self._regions.shared(blueprint.cluster)
        token = secrets.token_hex(8)
        request = self._request(blueprint, candidate, nodes, token, machine_image)
        self._reporting.publish(
            events.InstanceLaunching(
                count=len(nodes),
                instance_type=candidate.offer.instance_type,
                provider=self._provider.name,
                accelerator=candidate.offer.accelerators,
                place=candidate.offer.zone or candidate.offer.region,
                spot=candidate.spot,
                price=candidate.price,
                next_best=tuple(str(one) for one in self.offers.candidates() if one != candidate)[:_NEXT_BEST],
            )
        )
        await self._records.asked(request, infra)
        assigned = await self._requests.send(request, infra, candidate.price)
        if assigned:
            later = self._expiry() if self._expires else None
            self._regions.check_end(blueprint.cluster, infra, [assigned[0].id], later)
        return [
            Rented(
                instance=one,
                candidate=candidate,
                blueprint=blueprint,
                infra=infra,
                token=token,
                machine_image=machine_image,
                at=_now(),
            )
            for one in assigned
        ]

    def _request(
        self,
        blueprint: Blueprint,
        candidate: Candidate,
        nodes: Sequence[int],
        token: str,
        machine_image: MachineImage | None = None,
    ) -> LaunchRequest:
        return LaunchRequest(
            cluster=blueprint.cluster,
            nodes=nodes,
            token=token,
            spot=candidate.spot,
            tags=Tags(
                pool_id=self._cluster.pool_id,
                pool_name=self._cluster.pool_name,
                owner=owner(),
                client=CLIENT,
                token=token,
                expires_at=self._expiry() if self._expires else None,
            ),
            machine_image=machine_image,
            avoid=sorted(self._instances.taken(self._cluster.pool_id, nodes) | self.offers.shunned),
        )

    def _afford(self, count: int, rate: float, staying: int = 0) -> None:
        """Refuse machines that the budget does not allow, now or while they linger."""
        self._reporting.meter.afford(self._provider.name, count, rate)
        check_budget(
            linger=self._options.linger if self._provider.facts.rents else 0.0,
            nodes=count + staying,
            rate=rate,
            budget=self._options.budget,
            pool=self._cluster.pool_name,
        )

    async def _adopt(self, nodes: Sequence[int], take: Callable[[int, Rented], None]) -> dict[int, Instance]:
        """Assign machines of an earlier pool to nodes, and return those that have one now."""
        adoption, self._adoption = self._adoption, None
        if adoption is None:
            return {}
        await self.check_called_off()
        given = await adoption.give(nodes, self._afford)
        later = self._expiry() if self._expires else None
        for rented in given:
            self._regions.check_end(rented.blueprint.cluster, rented.infra, [rented.instance.id], later)
            take(rented.instance.node, rented)
        self._looking.append(asyncio.ensure_future(self._renew_adopted([rented.instance.id for rented in given])))
        return {rented.instance.node: rented.instance for rented in given}

    async def _renew_adopted(self, ids: Sequence[str]) -> None:
        try:
            await self.renew(ids)
        except SkywardError as error:
            _log.warning("lingering.expiry_not_written provider=%s: %s", self._provider.name, error)

    def _blueprint(self, offer: Offer) -> Blueprint:
        known = self._blueprints.get(id(offer))
        if known is None:
            known = self._blueprints[id(offer)] = draw(self._cluster, offer)
        return known

    def _fallback(self, offer: Offer) -> Blueprint:
        """Return what becomes of an offer's machines; one that plugins refuse is only passed over."""
        try:
            return self._blueprint(offer)
        except ConfigError as error:
            raise OfferError(str(error)) from error

    def _expiry(self) -> float:
        return self._provider.now() + self.life


def _now() -> float:
    return asyncio.get_running_loop().time()
