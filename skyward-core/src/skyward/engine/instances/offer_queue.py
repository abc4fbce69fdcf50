"""A provider's offers for a pool: the one to try next, those refused, and the error when none is left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.instances.regions import PROVIDER_TIMEOUT
from skyward.errors import (
    CapacityError,
    NoAvailableProviderError,
    OfferError,
    ProvisionError,
    QuotaError,
    SkywardError,
)
from skyward.plan.instances.cloud_failures import Failing, hopeless, noted
from skyward.plan.offers.choice import Candidate, Choice, Kind, Refusal, choose, in_order, remaining
from skyward.plan.offers.nearest import broader, has_device
from skyward.plan.offers.tried import tried, unasked

if TYPE_CHECKING:
    from skyward.model.instances.cluster import Cluster
    from skyward.model.instances.offer import Offer
    from skyward.model.spec.spec import Spec

_log = logging.getLogger(__name__)

NEAR_TIMEOUT = 20.0
"""Seconds that a provider has to say what comes near, which is reported and not rented."""

_EXHAUSTED: dict[str, type[SkywardError]] = {"quota": QuotaError, "failed": ProvisionError}
"""Error classes for when no offer is left and all were refused for the same reason."""


class OfferQueue:
    """
    Look at what one provider sells, and remember what it refused; lives in the engine's loop.

    Args:
        provider: The provider.
        cluster: The pool, whatever its offer.
    """

    def __init__(self, provider: ProviderHandle, cluster: Cluster) -> None:
        self._provider = provider
        self._cluster = cluster
        self._choice = Choice()
        self._looked = False
        self._refusals: list[Refusal] = []
        self._last: SkywardError | None = None
        self._failing = Failing()
        self.shunned: frozenset[str] = frozenset()
        """Machines that failed their health checks twice, by their names."""

    @property
    def billed(self) -> bool:
        """Return whether anything that is for sale costs money."""
        return any(made.price > 0 for made in (*self._choice.spot, *self._choice.on_demand))

    @property
    def hopeless(self) -> bool:
        """Return whether the provider has failed every launch for so long that no other offer is tried."""
        return hopeless(self._failing, _now())

    async def look(self) -> None:
        """
        Ask for offers, and forget which were refused: there may be capacity by now.

        Raises:
            SkywardError: If the provider does not answer.
        """
        self._refusals.clear()
        spec = self._cluster.spec
        offers = await self._ask(spec)
        self._choice = choose(spec, offers, self._choice.least)
        first, self._looked = not self._looked, True
        if first and not any(has_device(spec, offer) for offer in offers):
            self._choice = choose(spec, [*offers, *await self._ask_for_more(spec)], self._choice.least)

    async def _ask(self, spec: Spec, timeout: float = PROVIDER_TIMEOUT) -> Sequence[Offer]:
        return tuple(await self._provider.call("skyward_offers", spec=spec, timeout=timeout) or ())

    async def _ask_for_more(self, spec: Spec) -> list[Offer]:
        """Ask for the accelerators of a spec in every memory and number, to tell what comes near; may fail."""
        asked = [self._ask(each, NEAR_TIMEOUT) for each in broader(spec)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        found: dict[str, Offer] = {}
        for answer in answers:
            if isinstance(answer, BaseException):
                _log.info("offer.nearest provider=%s error=%s", self._provider.name, answer)
            else:
                found |= {offer.key: offer for offer in answer if has_device(spec, offer)}
        return list(found.values())

    def candidates(self, *, spot: bool | None = None, since: float | None = None) -> tuple[Candidate, ...]:
        """
        Return the ways to rent a machine that were not refused lately, in the order to try.

        Args:
            spot: As for `in_order`.
            since: When the search began, by the loop's clock: nothing is tried twice in one; None for now.
        """
        order = in_order(self._cluster.spec, self._choice, spot=spot)
        if self.shunned:
            order = tuple(made for made in order if str(made.offer.data.get("machine")) not in self.shunned)
        return remaining(order, self._refusals, now=_now() if since is None else since)

    def answered(self) -> None:
        """Record that a launch succeeded."""
        self._failing = Failing()

    def refused(self, candidate: Candidate, error: SkywardError, began: float) -> None:
        """
        Record that a launch failed.

        Args:
            candidate: What was asked for.
            error: Why there was none.
            began: When it was asked for, by the loop's clock.
        """
        _log.info("offer.refused provider=%s offer=%s reason=%s", self._provider.name, candidate, error)
        self._last = error
        kind: Kind = "quota" if isinstance(error, QuotaError) else "failed"
        if isinstance(error, CapacityError):
            kind = "capacity"
        if kind != "failed" or not isinstance(error, OfferError):
            # What plugins refuse tells nothing of the cloud.
            self._failing = noted(self._failing, began, answered=kind != "failed")
        self.refuse(candidate, kind, str(error), error)

    def refuse(self, candidate: Candidate, kind: Kind, reason: str, error: SkywardError | None = None) -> None:
        """Pass an offer over for a while."""
        refusal = Refusal(candidate=candidate, kind=kind, reason=reason, at=_now())
        self._refusals.append(evolve(refusal, of=error.of) if isinstance(error, QuotaError) else refusal)

    def nothing(self) -> NoAvailableProviderError:
        """Return the error that says why nothing will do."""
        unwanted = unasked(self._choice)
        return NoAvailableProviderError(
            f"{self._provider.name} has nothing that meets the requirements of pool {self._cluster.pool_name!r}: "
            f"{self._choice.why_not}{f' {unwanted}' if unwanted else ''}",
            provider=self._provider.name,
            pool=self._cluster.pool_name,
        )

    def exhausted(self) -> SkywardError:
        """Return the error that lists all that was tried."""
        failing = f"it failed every launch for {self._failing.lasted(_now()):.0f} s: " if self.hopeless else ""
        kinds = {refusal.kind for refusal in self._refusals}
        kind = _EXHAUSTED.get(next(iter(kinds)), CapacityError) if len(kinds) == 1 else CapacityError
        if kinds == {"failed"} and len(self._refusals) == 1 and self._last is not None:
            return self._last
        return kind(
            f"{self._provider.name} can give no machine for pool {self._cluster.pool_name!r}: "
            f"{failing}{tried(self._refusals, self._choice)}",
            provider=self._provider.name,
            pool=self._cluster.pool_name,
            hint="Ask for less, name more regions or providers, or try again later.",
        )


def _now() -> float:
    return asyncio.get_running_loop().time()
