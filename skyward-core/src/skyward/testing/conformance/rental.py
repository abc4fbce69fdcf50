"""One pool of a trial: what it launches, lists, terminates and releases."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from attrs import evolve, field, frozen

from skyward.errors import CapacityError, QuotaError
from skyward.hookspecs import Cluster, Instance, InstanceState, LaunchRequest, MachineImage, Offer, ProviderFacts, Tags
from skyward.model.spec.spec import Spec
from skyward.plan.instances.owned_instances import of_another
from skyward.testing.conformance.switches import Switches

__all__ = ["LEASE", "Asking", "Rental"]

LEASE = 3600.0
"""Seconds after which an instance of a trial counts as an orphan."""

_LINE = 40
"""Characters from which on a line of a private key is one that must not be shown."""


class Asking(Protocol):
    """What a rental needs of its trial."""

    spec: Spec
    switches: Switches

    @property
    def facts(self) -> ProviderFacts:
        """Return the provider's facts."""
        ...

    def has(self, hook: str) -> bool:
        """Return whether the provider implements a hook."""
        ...

    def ask(self, hook: str, **arguments: Any) -> Any:
        """Call a hook, and return its answer."""
        ...

    def hide(self, *texts: str) -> None:
        """Add texts that the provider must never show."""
        ...

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until a condition holds."""
        ...

    def ways(self) -> list[tuple[Offer, bool]]:
        """Return the ways to launch, the cheapest first."""
        ...


@frozen(kw_only=True)
class Rental:
    """
    Hold one pool.

    Args:
        trial: What asks.
        offer: What is launched.
        spot: Whether as spot.
        nodes: How many nodes it has.
        pool_id: The pool.
        token: The idempotency token of its launch.
        machine_image: What the instances boot from; None for what they take by themselves.
        ttl: The pool's `ttl`; None for that of the spec.
    """

    trial: Asking
    offer: Offer
    spot: bool
    nodes: int = 1
    pool_id: str = field(factory=lambda: secrets.token_hex(4))
    token: str = field(factory=lambda: secrets.token_hex(8))
    machine_image: MachineImage | None = None
    ttl: float | None = None
    cluster: Cluster = field(init=False, repr=False)
    _infra: list[Any] = field(factory=list, init=False, repr=False)
    _launched: list[Instance] = field(factory=list, init=False, repr=False)

    @cluster.default
    def _cluster(self) -> Cluster:
        spec = self.trial.spec if self.ttl is None else evolve(self.trial.spec, ttl=self.ttl)
        cluster = Cluster(
            pool_id=self.pool_id,
            pool_name="conformance",
            spec=spec,
            offer=self.offer,
            provider=self.trial.facts.name,
            nodes=self.nodes,
        )
        self.trial.hide(*(line for line in cluster.key.private.splitlines() if len(line) >= _LINE and " " not in line))
        return cluster

    @property
    def image_hash(self) -> str:
        """Return the content hash of a machine image of the instance, which no other image has."""
        return f"0{self.pool_id}"

    @property
    def infra(self) -> Any:
        """Return what the pool's instances share."""
        return self._infra[0]

    @property
    def machine(self) -> Instance:
        """Return the first instance, as its launch returned it."""
        return self._launched[0]

    @property
    def launched(self) -> list[Instance]:
        """Return the instances that launches returned, each once."""
        return list({each.id: each for each in reversed(self._launched)}.values())[::-1]

    @property
    def request(self) -> LaunchRequest:
        """Return the request that launches the instances."""
        tags = Tags(
            pool_id=self.pool_id,
            pool_name="conformance",
            owner="conformance",
            client=self.pool_id,
            token=self.token,
            expires_at=float(int(time.time() + LEASE)) if self.trial.has("skyward_renew") else None,
        )
        return LaunchRequest(
            cluster=self.cluster,
            nodes=range(self.nodes),
            token=self.token,
            spot=self.spot,
            tags=tags,
            machine_image=self.machine_image,
        )

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Set up what instances share; in the end, whatever happened, terminate all instances and release it."""
        self._infra.append(self.trial.ask("skyward_open", cluster=self.cluster))
        try:
            yield
        finally:
            self.trial.switches.calm()
            try:
                self.end(*{machine.id for machine in (*self._launched, *self.existing())})
                if self.trial.facts.rents:
                    self.trial.until(lambda: not self.existing(), f"the machines of pool {self.pool_id} are gone")
            finally:
                self.release()

    def launch(self) -> list[Instance]:
        """Launch the instances; every time with the same token."""
        made = list(self.trial.ask("skyward_launch", request=self.request, infra=self.infra))
        self._launched.extend(made)
        return made

    def fill(self) -> list[Instance]:
        """Launch the instances that are missing by other offers of the region, and return all there are."""
        for offer, spot in self.trial.ways():
            have = {each.node for each in self._launched}
            missing = tuple(node for node in range(self.nodes) if node not in have)
            if not missing:
                break
            if offer.region != self.offer.region or offer == self.offer:
                continue
            token = secrets.token_hex(8)
            request = evolve(
                self.request,
                cluster=evolve(self.cluster, offer=offer),
                nodes=missing,
                token=token,
                spot=spot,
                tags=evolve(self.request.tags, token=token),
            )
            try:
                self._launched.extend(self.trial.ask("skyward_launch", request=request, infra=self.infra))
            except (CapacityError, QuotaError):
                continue
        return self.launched

    def listed(self) -> list[Instance]:
        """Return the pool's instances as the provider lists them."""
        return list(self.trial.ask("skyward_instances", cluster=self.cluster, infra=self.infra))

    def running(self) -> Instance:
        """Wait until the first instance runs, and return it as it is listed then."""
        return self.all_running()[0]

    def all_running(self) -> list[Instance]:
        """Wait until all instances run, and return them as they are listed then."""
        if not self.trial.facts.rents:
            return self.launched
        ids = [each.id for each in self.launched]
        found: dict[str, Instance] = {}

        def run() -> bool:
            found.clear()
            found.update({each.id: each for each in self.listed() if each.id in ids})
            for each in found.values():
                ended = each.state in (InstanceState.ENDED, InstanceState.ENDING)
                assert not ended, f"{each.id} ended before it ran."
            return all(name in found and found[name].state is InstanceState.RUNNING for name in ids)

        self.trial.until(run, f"skyward_instances lists {', '.join(ids)} as RUNNING")
        return [found[name] for name in ids]

    def end(self, *ids: str) -> None:
        """Terminate instances."""
        if ids:
            self.trial.ask("skyward_terminate", cluster=self.cluster, infra=self.infra, ids=ids)

    def release(self) -> None:
        """Release what instances shared."""
        self.trial.ask("skyward_release", cluster=self.cluster, infra=self.infra)

    def existing(self) -> list[Instance]:
        """Return the pool's instances that have not ended; never another pool's, whatever the provider lists."""
        there = (machine for machine in self.listed() if machine.state is not InstanceState.ENDED)
        return [machine for machine in there if not of_another(machine, self.pool_id)]

    def coming(self) -> list[str]:
        """Return the ids of the pool's instances that are pending or running, as the provider lists them."""
        states = (InstanceState.PENDING, InstanceState.RUNNING)
        return [machine.id for machine in self.existing() if machine.state in states]
