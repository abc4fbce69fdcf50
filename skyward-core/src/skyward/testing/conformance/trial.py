"""Ask a provider on trial: every answer is kept, every machine is ended, and every wait has an end."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from attrs import evolve, field, frozen

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import CapacityError, QuotaError
from skyward.hookspecs import Cluster, Instance, InstanceState, LaunchRequest, MachineImage, Offer, ProviderFacts, Tags
from skyward.model.spec.spec import Spec
from skyward.plan.instances.owned_instances import of_another

__all__ = ["Rental", "Trial"]

LEASE = 3600.0
"""Seconds after which a machine of a trial counts as forgotten."""

OFFERS_TRIED = 10
"""How many offers are tried, the cheapest first, until one has a machine left."""

_LONGEST_PAUSE = 5.0


class Trial:
    """
    Ask one provider, and listen to all it says.

    Args:
        provider: The provider.
        hidden: Texts that it must never show.
        spec: What is asked for.
        patience: Seconds that a machine may take to run, or to be gone.
    """

    def __init__(self, provider: object, hidden: Sequence[str], spec: Spec, patience: float) -> None:
        self.handle = ProviderHandle(provider)
        self.spec = evolve(spec, provider=provider)
        self.patience = patience
        self._hidden = hidden
        self._heard = _Heard()
        self._runner = asyncio.Runner()
        self._root_level = logging.NOTSET
        for text in (repr(provider), str(provider), repr(self.spec)):
            self._heard.texts.append(text)

    def __enter__(self) -> Self:
        root = logging.getLogger()
        self._root_level = root.level
        root.addHandler(self._heard)
        root.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        root = logging.getLogger()
        root.removeHandler(self._heard)
        root.setLevel(self._root_level)
        self._runner.close()

    @property
    def facts(self) -> ProviderFacts:
        """Return what the provider tells about itself."""
        return self.handle.facts

    def has(self, hook: str) -> bool:
        """Return whether the provider implements a hook."""
        return hasattr(type(self.handle.provider), hook)

    def ask(self, hook: str, **arguments: Any) -> Any:
        """
        Call a hook, and return its answer.

        Raises:
            SkywardError: What the provider raises; a PluginError if that is none of Skyward's.
        """
        try:
            answer = self._runner.run(self.handle.call(hook, timeout=self.patience, **arguments))
        except Exception as error:
            self._heard.texts += [str(error), repr(error), repr(vars(error))]
            raise
        self._heard.texts += [repr(answer), str(answer)]
        return answer

    def shown(self) -> list[str]:
        """List what the provider showed of what it must hide: the text in which it stands, with stars in its place."""
        found = []
        for secret in self._hidden:
            found += [text.replace(secret, "*****") for text in self._heard.texts if secret in text]
        return found

    def until(self, holds: Callable[[], object], what: str) -> None:
        """
        Wait until a condition holds.

        Args:
            holds: The condition.
            what: What it is, for the message.
        """
        deadline, pause = time.monotonic() + self.patience, 0.05
        while not holds():
            assert time.monotonic() < deadline, f"After {self.patience:g} s still not true: {what}."
            time.sleep(pause)
            pause = min(_LONGEST_PAUSE, pause * 1.5)

    def ways(self) -> list[tuple[Offer, bool]]:
        """List the ways to rent, the cheapest first: an offer, and whether as spot."""
        offers = [offer for offer in self.ask("skyward_offers", spec=self.spec) if offer.available]
        ways = [(offer, spot) for offer in offers for spot in (False, True) if offer.price(spot=spot) is not None]
        assert ways, "skyward_offers sells nothing that is available now and has a price."
        return sorted(ways, key=lambda way: way[0].price(spot=way[1]) or 0.0)

    @contextmanager
    def rental(self) -> Iterator[Rental]:
        """Rent one machine, the cheapest that can be had; end it and all else of its pool when the block is left."""
        reason: Exception | None = None
        for offer, spot in self.ways()[:OFFERS_TRIED]:
            rental = Rental(trial=self, offer=offer, spot=spot)
            with rental.opened():
                try:
                    rental.launch()
                except (CapacityError, QuotaError) as error:
                    reason = error
                    continue
                yield rental
                return
        raise AssertionError(f"None of the {OFFERS_TRIED} cheapest offers could be rented: {reason}") from reason


@frozen(kw_only=True)
class Rental:
    """
    Hold one pool of one machine.

    Args:
        trial: What asks.
        offer: What is rented.
        spot: Whether as spot.
        pool_id: The pool.
        token: The request.
        machine_image: What the machine boots from; None for what it takes by itself.
    """

    trial: Trial
    offer: Offer
    spot: bool
    pool_id: str = field(factory=lambda: secrets.token_hex(4))
    token: str = field(factory=lambda: secrets.token_hex(8))
    machine_image: MachineImage | None = None
    cluster: Cluster = field(init=False, repr=False)
    _infra: list[Any] = field(factory=list, init=False, repr=False)
    _machines: list[Instance] = field(factory=list, init=False, repr=False)

    @cluster.default
    def _cluster(self) -> Cluster:
        name = self.trial.handle.name
        return Cluster(
            pool_id=self.pool_id,
            pool_name="conformance",
            spec=self.trial.spec,
            offer=self.offer,
            provider=name,
            nodes=1,
        )

    @property
    def image_hash(self) -> str:
        """Return what a machine image of the machine is said to hold: what no other image does."""
        return f"0{self.pool_id}"

    @property
    def infra(self) -> Any:
        """Return what the pool's machines share."""
        return self._infra[0]

    @property
    def machine(self) -> Instance:
        """Return the machine, as the first launch told."""
        return self._machines[0]

    @property
    def request(self) -> LaunchRequest:
        """Return the request that rents the machine."""
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
            nodes=(0,),
            token=self.token,
            spot=self.spot,
            tags=tags,
            machine_image=self.machine_image,
        )

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Set up what machines share; in the end, whatever happened, end all machines and take it away."""
        self._infra.append(self.trial.ask("skyward_open", cluster=self.cluster))
        try:
            yield
        finally:
            try:
                self.end(*{machine.id for machine in (*self._machines, *self.existing())})
                if self.trial.facts.rents:
                    self.trial.until(lambda: not self.existing(), f"the machines of pool {self.pool_id} are gone")
            finally:
                self.release()

    def launch(self) -> list[Instance]:
        """Ask for the machine; every time with the same token."""
        made = list(self.trial.ask("skyward_launch", request=self.request, infra=self.infra))
        self._machines.extend(made)
        return made

    def listed(self) -> list[Instance]:
        """List the pool's machines."""
        return list(self.trial.ask("skyward_instances", cluster=self.cluster, infra=self.infra))

    def running(self) -> Instance:
        """Wait until the machine runs, and return it as it is listed then."""
        if not self.trial.facts.rents:
            return self.machine
        found: list[Instance] = []

        def runs() -> bool:
            found[:] = [each for each in self.listed() if each.id == self.machine.id]
            ended = any(each.state in (InstanceState.ENDED, InstanceState.ENDING) for each in found)
            assert not ended, f"{self.machine.id} ended before it ran."
            return any(each.state is InstanceState.RUNNING for each in found)

        self.trial.until(runs, f"skyward_instances lists {self.machine.id} as RUNNING")
        return found[0]

    def end(self, *ids: str) -> None:
        """End machines."""
        if ids:
            self.trial.ask("skyward_terminate", cluster=self.cluster, infra=self.infra, ids=ids)

    def release(self) -> None:
        """Take away what machines shared."""
        self.trial.ask("skyward_release", cluster=self.cluster, infra=self.infra)

    def existing(self) -> list[Instance]:
        """List the pool's machines that have not ended; never another pool's, whatever the provider lists."""
        there = (machine for machine in self.listed() if machine.state is not InstanceState.ENDED)
        return [machine for machine in there if not of_another(machine, self.pool_id)]


class _Heard(logging.Handler):
    """Keep every record of every logger as text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.texts.append(self.format(record))
