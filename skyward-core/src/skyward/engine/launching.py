"""Rent machines for the nodes of a pool: one offer after the other, until each node has one, and give them back."""

from __future__ import annotations

import asyncio
import logging
import platform
import random
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

from skyward.engine.blueprint import Blueprint, draw
from skyward.engine.provider_handle import ProviderHandle
from skyward.engine.regions import PROVIDER_TIMEOUT, Regions
from skyward.errors import (
    BudgetExceededError,
    CapacityError,
    ConfigError,
    CredentialsError,
    NoAvailableProviderError,
    OfferError,
    PluginError,
    ProvisionError,
    QuotaError,
    SkywardError,
)
from skyward.model import event as events
from skyward.model.cluster import Cluster
from skyward.model.machine import Instance, InstanceState, LaunchRequest
from skyward.model.offer import Offer
from skyward.model.tags import Tags
from skyward.plan.choice import Candidate, Choice, Refusal, choose, in_order, must_be_spot, remaining
from skyward.plan.owned import forgotten

if TYPE_CHECKING:
    from skyward.engine.journal import Journal
    from skyward.engine.reporting import Reporting
    from skyward.model.options import Options

_log = logging.getLogger(__name__)

BATCH = 32
"""Machines that are asked for at once."""

LOOKS = (0.5, 2.0, 5.0)
"""Seconds between the looks for what a launch rented whose answer was lost; lists lag behind."""

LIFE = 3600.0
"""Seconds until a machine counts as forgotten on which its client wrote no later time; twice `ttl` if that is more."""

_EXHAUSTED: dict[str, type[SkywardError]] = {"quota": QuotaError, "failed": ProvisionError}
"""What it is called when nothing is left to try, where all was refused for one reason."""

CLIENT = secrets.token_hex(6)
"""Identity of this process, written on machines."""


@frozen(kw_only=True, eq=False)
class Rented:
    """
    Hold a machine, and what it was rented with.

    Args:
        instance: The machine.
        candidate: The offer, and its market.
        blueprint: What is made of it.
        infra: What the pool's machines in its region share.
        token: Names the request that rented it.
    """

    instance: Instance
    candidate: Candidate
    blueprint: Blueprint
    infra: Any
    token: str


class Launching:
    """
    Rent and give back the machines of one pool.

    Args:
        provider: Where they come from.
        cluster: The pool, whatever its offer.
        options: How long things may take.
        reporting: Where events go.
    """

    def __init__(self, provider: ProviderHandle, cluster: Cluster, options: Options, reporting: Reporting) -> None:
        self._provider = provider
        self._cluster = cluster
        self._spec = cluster.spec
        self._options = options
        self._reporting = reporting
        self._choice = Choice()
        self._refusals: list[Refusal] = []
        self._blueprints: dict[int, Blueprint] = {}
        self._journal: Journal | None = None
        self._last: SkywardError | None = None
        self._looking: asyncio.Task[None] | None = None
        self.regions = Regions(provider, options, reporting)
        self.under_way: set[str] = set()
        self.held: set[str] = set()
        self._ended: set[str] = set()
        self.first: Blueprint

    @property
    def provider_name(self) -> str:
        """Name the provider."""
        return self._provider.name

    @property
    def life(self) -> float:
        """Seconds that a machine counts as ours after its expiry was written."""
        return max(LIFE, 2 * (self._spec.ttl or 0.0))

    @property
    def billed(self) -> bool:
        """Tell whether anything that is for sale costs money."""
        return any(made.price > 0 for made in (*self._choice.spot, *self._choice.on_demand))

    async def open(self) -> None:
        """
        Look at what is for sale, and decide what is to be tried first.

        Raises:
            NoAvailableProviderError: If nothing meets the spec.
            ConfigError: If the spec asks for what cannot be.
        """
        await self._provider.call("skyward_preflight", spec=self._spec, timeout=PROVIDER_TIMEOUT)
        await self._look()
        candidates = self._candidates()
        if not candidates:
            raise NoAvailableProviderError(
                f"{self._provider.name} has nothing that meets the requirements of pool {self._cluster.pool_name!r}: "
                f"{self._choice.why_not}",
                provider=self._provider.name,
                pool=self._cluster.pool_name,
            )
        self.first = self._blueprint(candidates[0].offer)
        if self.billed:
            # Late, because it wants a database, which nobody needs who stays at home.
            from skyward.engine.journal import Journal

            self._journal = Journal.open()
            self._looking = asyncio.ensure_future(self._warn_of_forgotten())

    async def launch(
        self, nodes: Sequence[int], staying: Sequence[Instance], take: Callable[[int, Rented], None]
    ) -> dict[int, SkywardError]:
        """
        Rent a machine for each node.

        Args:
            nodes: The nodes.
            staying: The machines that the pool has already, which count for its share of spot.
            take: Called with each node and its machine, as soon as it is rented.

        Returns:
            The nodes that got none, and why.

        Raises:
            BudgetExceededError: If the budget does not pay for all of them.
        """
        for candidate in self._candidates()[:1]:
            self._reporting.meter.afford(self._provider.name, len(nodes), candidate.price)
        total = len(nodes) + len(staying)
        spot = must_be_spot(
            self._spec.allocation, total=total, spot=sum(one.spot for one in staying), staying=len(staying)
        )
        share = self._spec.allocation.spot is not None
        failed: dict[int, SkywardError] = {}
        for market, group in ((True if share else None, nodes[:spot]), (False if share else None, nodes[spot:])):
            for begin in range(0, len(group), BATCH):
                failed |= await self._fill(group[begin : begin + BATCH], take, spot=market)
        return failed

    async def renew(self, ids: Iterable[str]) -> None:
        """
        Write a later expiry on machines.

        Raises:
            SkywardError: If the provider does not answer.
        """
        await self.regions.renew(ids, self._expiry())

    async def end(self, rented: Rented) -> None:
        """
        Give a machine back.

        Raises:
            SkywardError: If it may still exist.
        """
        try:
            await self.regions.end(rented.blueprint.cluster, rented.infra, (rented.instance.id,))
        finally:
            # One that could not be ended is nobody's from now on, and the watch tries again.
            self.held.discard(rented.instance.id)
        self._ended.add(rented.instance.id)
        if self._journal is not None:
            self._journal.ended(rented.token, rented.instance.id)

    async def close(self) -> None:
        """
        End what no node had, and take away what all machines shared.

        Raises:
            SkywardError: If something may still exist.
        """
        try:
            if self.billed and self.regions.used:
                listed = await self.regions.listed()
                # A list that lags has machines whose end was confirmed a moment ago.
                left = [one.id for one in listed if one.state is not InstanceState.ENDED and one.id not in self._ended]
                if left:
                    _log.warning("machines.unwanted provider=%s ids=%s", self._provider.name, ",".join(left))
                    await self.regions.end_anywhere(left)
            if self._journal is not None:
                self._journal.settled(self._cluster.pool_id)
        finally:
            if self._looking is not None:
                self._looking.cancel()
            await self.regions.release()
            if self._journal is not None:
                self._journal.close()

    async def _look(self) -> None:
        offers = await self._provider.call("skyward_offers", spec=self._spec, timeout=PROVIDER_TIMEOUT)
        self._choice = choose(self._spec, offers or ())

    async def _warn_of_forgotten(self) -> None:
        """Say which machines of this user nobody looks after any more; a provider that cannot tell is let be."""
        try:
            owned = await self._provider.call("skyward_owned", timeout=PROVIDER_TIMEOUT)
        except SkywardError as error:
            _log.info("owned.failed provider=%s: %s", self._provider.name, error)
            return
        for warning in forgotten(owned or (), owner=_owner(), now=time.time()):
            _log.warning("%s", warning)

    def _candidates(self, *, spot: bool | None = None) -> tuple[Candidate, ...]:
        order = in_order(self._spec, self._choice, spot=spot)
        return remaining(order, self._refusals, now=time.monotonic())

    async def _fill(
        self, nodes: Sequence[int], take: Callable[[int, Rented], None], *, spot: bool | None
    ) -> dict[int, SkywardError]:
        """Try one way to rent after the other until every node has a machine."""
        waiting = list(nodes)
        if not self._candidates(spot=spot):
            # All was refused, a while ago: there may be something else now.
            self._refusals.clear()
            await self._look()
        while waiting:
            candidates = self._candidates(spot=spot)
            if not candidates:
                return dict.fromkeys(waiting, self._exhausted())
            candidate = candidates[0]
            try:
                got = await self._ask(candidate, waiting)
            except (BudgetExceededError, ConfigError, CredentialsError, PluginError) as error:
                return dict.fromkeys(waiting, error)
            except SkywardError as error:
                self._refused(candidate, error)
                continue
            asked = len(waiting)
            for rented in got:
                waiting.remove(rented.instance.node)
                take(rented.instance.node, rented)
            if waiting:
                self._refused(candidate, CapacityError(f"It had {len(got)} of the {asked} machines asked for."))
        return {}

    async def _ask(self, candidate: Candidate, nodes: Sequence[int]) -> list[Rented]:
        """
        Ask for machines of one offer.

        Raises:
            SkywardError: If there are none; whatever was rented unseen has been found.
        """
        blueprint = self._fallback(candidate.offer)
        if blueprint.cluster.ranks_per_node != self.first.cluster.ranks_per_node:
            raise OfferError(
                f"It would have {blueprint.cluster.ranks_per_node} ranks, and the pool's other nodes have "
                f"{self.first.cluster.ranks_per_node}."
            )
        infra = await self.regions.shared(blueprint.cluster)
        token = secrets.token_hex(8)
        request = LaunchRequest(
            cluster=blueprint.cluster,
            nodes=nodes,
            token=token,
            spot=candidate.spot,
            tags=Tags(
                pool_id=self._cluster.pool_id,
                pool_name=self._cluster.pool_name,
                owner=_owner(),
                client=CLIENT,
                token=token,
                expires_at=self._expiry() if self._spec.ttl else None,
            ),
        )
        self._reporting.publish(
            events.InstanceLaunching(
                count=len(nodes), instance_type=candidate.offer.instance_type, provider=self._provider.name
            )
        )
        if self._journal is not None:
            await self._journal.asked(request, self._provider.name, infra)
        self.under_way.add(token)
        try:
            with self._reporting.meter.renting(self._provider.name, len(nodes), candidate.price):
                instances = await self._rented(request, infra)
        except (BudgetExceededError, CapacityError, QuotaError, CredentialsError, ConfigError):
            if self._journal is not None:
                self._journal.answered(token, ())
            raise
        finally:
            self.under_way.discard(token)
        if self._journal is not None:
            self._journal.answered(token, [one.id for one in instances])
        wanted = {one.node: one for one in instances if one.node in request.nodes}
        self.held |= {one.id for one in wanted.values()}
        return [
            Rented(instance=one, candidate=candidate, blueprint=blueprint, infra=infra, token=token)
            for one in wanted.values()
        ]

    async def _rented(self, request: LaunchRequest, infra: Any) -> Sequence[Instance]:
        """Have machines rented; where the answer is lost, look for what came of it, and ask once more."""
        try:
            return await self._launched(request, infra)
        except (CapacityError, QuotaError, CredentialsError, ConfigError):
            raise
        except SkywardError as error:
            _log.warning("launch.unanswered provider=%s token=%s: %s", self._provider.name, request.token, error)
            found = await self._found(request)
            if found:
                return found
            if isinstance(error, PluginError) and not isinstance(error.__cause__, OSError | TimeoutError):
                raise
            # The same token rents nothing twice, so that the second answer tells for certain.
            return await self._launched(request, infra)

    async def _launched(self, request: LaunchRequest, infra: Any) -> Sequence[Instance]:
        timeout = self._options.provision_timeout or PROVIDER_TIMEOUT
        instances: Sequence[Instance] = await self._provider.call(
            "skyward_launch", request=request, infra=infra, timeout=timeout
        )
        return instances

    async def _found(self, request: LaunchRequest) -> list[Instance]:
        """Find what a launch rented whose answer was lost."""
        for pause in LOOKS:
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))
            try:
                listed = await self.regions.listed()
            except SkywardError as error:
                _log.warning("instances.failed provider=%s: %s", self._provider.name, error)
                continue
            found = {
                one.node: one
                for one in listed
                if one.tags is not None
                and one.tags.token == request.token
                and one.state in (InstanceState.PENDING, InstanceState.RUNNING)
            }
            if found:
                return list(found.values())
        return []

    def _refused(self, candidate: Candidate, error: SkywardError) -> None:
        kind: Any = "quota" if isinstance(error, QuotaError) else "failed"
        if isinstance(error, CapacityError):
            kind = "capacity"
        _log.info("offer.refused provider=%s offer=%s reason=%s", self._provider.name, candidate, error)
        self._last = error
        self.refuse(candidate, kind, str(error))

    def refuse(self, candidate: Candidate, kind: Any, reason: str) -> None:
        """Pass an offer over for a while."""
        self._refusals.append(Refusal(candidate=candidate, kind=kind, reason=reason, at=time.monotonic()))

    def _exhausted(self) -> SkywardError:
        """Give the error that lists all that was tried."""
        tried = {str(refusal.candidate): refusal for refusal in self._refusals}
        lines = "".join(f"\n  {name}: {refusal.reason}" for name, refusal in tried.items())
        rest = self._choice.rejections
        if len(tried) == 1 and not rest and self._last is not None:
            return self._last
        kinds = {refusal.kind for refusal in self._refusals}
        kind = _EXHAUSTED.get(kinds.pop(), CapacityError) if len(kinds) == 1 else CapacityError
        return kind(
            f"{self._provider.name} can give no machine for pool {self._cluster.pool_name!r}. Tried:{lines}"
            f"{f'{chr(10)}Not tried: {self._choice.why_not}' if rest else ''}",
            provider=self._provider.name,
            pool=self._cluster.pool_name,
            hint="Ask for less, name more regions or providers, or try again later.",
        )

    def _blueprint(self, offer: Offer) -> Blueprint:
        known = self._blueprints.get(id(offer))
        if known is None:
            known = self._blueprints[id(offer)] = draw(self._cluster, offer)
        return known

    def _fallback(self, offer: Offer) -> Blueprint:
        """Give what becomes of an offer's machines; one that plugins refuse is only passed over."""
        try:
            return self._blueprint(offer)
        except ConfigError as error:
            raise OfferError(str(error)) from error

    def _expiry(self) -> float:
        return time.time() + self.life


def _owner() -> str:
    """Name who runs this program, and where."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "unknown"
    return f"{user}@{platform.node()}"
