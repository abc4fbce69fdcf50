"""The provider of machines of Vast.ai."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import Factory, field, frozen

from skyward.provider import (
    END_COMMAND,
    AccountHooks,
    CloudDisk,
    ConfigError,
    Disks,
    DockerImage,
    Instance,
    Offer,
    ProviderFacts,
    RegionsLike,
    cuda,
    docker_image,
    hookimpl,
    listed,
    positive,
    readable,
    regions,
    suggesting,
    switch,
)
from skyward_vastai.account import Account
from skyward_vastai.catalogue import HIGHEST_BID, Wish, is_country, query, to_offer
from skyward_vastai.launching import Order, launch

if TYPE_CHECKING:
    from skyward.provider import LaunchRequest, Spec

DISKS = 1
"""Volumes of a container at most: `volume_info` of the call that rents it is one object, in Vast.ai's description."""

_OFFERS_TTL = 120.0
_COUNTRY = "the code of a country such as 'US'"


def _regions(value: RegionsLike) -> tuple[str, ...]:
    """Return the codes of countries, checked."""
    codes = tuple(name.strip().upper() for name in regions(value, _COUNTRY))
    if not all(map(is_country, codes)):
        raise ConfigError(f"region must be {_COUNTRY}, or several, not {value!r}.")
    return codes


def _image(value: str | DockerImage) -> DockerImage:
    """Return the image that containers start from, checked."""
    return docker_image(value, "docker_image")


def _reliability(value: float) -> float:
    """Return the least reliability, checked."""
    given: object = value
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not math.isfinite(value) or not 0 <= value < 1:
        raise ConfigError(f"reliability must be a number from 0 to below 1, not {value!r}.")
    return float(value)


def _bid_factor(value: float) -> float:
    """Return how much more than the lowest bid is bid, checked."""
    factor = positive(value, "bid_factor")
    if not 1 <= factor <= HIGHEST_BID:
        raise ConfigError(f"bid_factor must be at least 1, not {value!r}: a lower bid never runs.")
    return factor


@suggesting
@frozen(kw_only=True)
class VastAI(AccountHooks):
    """
    Rent machines of other people on Vast.ai, on demand or for a bid.

    Every listing is one machine, a container with GPUs.

    Args:
        api_key: The account's key; None for `VAST_API_KEY`, or the one that Vast's own command keeps.
        region: Code of the only country to rent in, or several; None for all.
        docker_image: What containers start from: one of `sky.containers`, or its name.
        registry: How a private registry is entered, as `"-u user -p token registry.example"`; None for public images.
        verified: Whether only machines that Vast.ai has verified will do.
        reliability: The least reliability of a machine, from 0 to 1, as Vast.ai has measured it.
        bid_factor: What is bid for a machine that may be reclaimed, as a multiple of the lowest that would run now.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> VastAI(api_key="hidden", region="us").region
    ('US',)
    """

    api_key: str | None = field(default=None, repr=False)
    region: tuple[str, ...] = field(default=None, converter=_regions)
    docker_image: DockerImage = field(factory=lambda: cuda("12.8", variant="base"), converter=_image)
    registry: str | None = field(default=None, repr=False)
    verified: bool = field(default=True, validator=switch)
    reliability: float = field(default=0.95, converter=_reliability)
    bid_factor: float = field(default=1.2, converter=_bid_factor)
    _account: Account = field(
        default=Factory(lambda self: Account(self.api_key), takes_self=True), init=False, eq=False, repr=False
    )

    def _disks(self, spec: Spec) -> Disks[CloudDisk]:
        return Disks(provider="vastai", title="Vast.ai", find=self._account.volume, wanted=spec.volumes)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: a container that runs terminates by a key of its own, and no two share a network."""
        return ProviderFacts(
            name="vastai",
            ends_own_bill="running",
            billing_granularity_s=1.0,
            nodes_reach_each_other=False,
            spot=True,
            offers_ttl_s=_OFFERS_TTL,
            # Listings are the same for everybody.
            offers_key=self._account.url,
            end_command=END_COMMAND,
            strangers=True,
            disks=DISKS,
        )

    @hookimpl
    async def skyward_preflight(self, spec: Spec) -> None:
        """
        Check the key, and the country's code.

        Raises:
            CredentialsError: If there is none, or Vast.ai refuses it.
            ConfigError: If a region is no code of a country, or there is no such disk.
        """
        if spec.region is not None and not is_country(spec.region):
            raise ConfigError(
                f"Vast.ai has no region {spec.region!r}.",
                provider="vastai",
                hint="Its regions are countries: write their codes, such as region='US'.",
            )
        # A key may have the right to rent and none to know whose it is.
        if await self._account.api.get("/api/v0/users/current/", also=(403,)) is None:
            await self._account.inventory.rows()
        await self._disks(spec).mounts()

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        """
        List the machines that are listed now.

        Raises:
            QuotaError: If the account's searches of today are used up.
        """
        machine = next(iter(await self._disks(spec).places(())), None)
        wish = Wish(
            countries=self.region,
            verified=self.verified,
            reliability=self.reliability,
            cuda=self.docker_image.cuda,
            bid_factor=self.bid_factor,
            machine=None if machine is None else int(machine),
        )

        def read(answer: object) -> list[Offer]:
            return readable(listed(answer, "offers"), lambda row: to_offer(row, wish), provider="vastai")

        return await self._account.api.post(
            "/api/v0/bundles/", json=query(spec, wish), once=False, lane="search", read=read
        )

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        """
        Rent the machine of the listing for the first node.

        Raises:
            CapacityError: If another customer took it, or bids more.
        """
        mounts = {disk.id: where for disk, where in await self._disks(request.cluster.spec).mounts()}
        order = Order(request=request, image=self.docker_image.tag, registry=self.registry, mounts=mounts)
        return await launch(self._account, order)
