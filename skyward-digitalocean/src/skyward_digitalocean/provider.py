"""The provider of DigitalOcean's droplets."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import Factory, field, frozen

from skyward.provider import (
    AccountHooks,
    BucketStorage,
    CloudDisk,
    ConfigError,
    CredentialsError,
    Disks,
    Instance,
    Offer,
    ProviderFacts,
    RegionsLike,
    Registered,
    check_places,
    hookimpl,
    regions,
    ssh_port,
    suggesting,
    text,
)
from skyward_digitalocean.account import Account
from skyward_digitalocean.catalogue import to_offers
from skyward_digitalocean.keys import close_keys, forget_tags, open_key
from skyward_digitalocean.launching import Order, launch
from skyward_digitalocean.spaces import bucket_storage

if TYPE_CHECKING:
    from skyward.provider import Cluster, LaunchRequest, Spec

__all__ = ["DigitalOcean"]

DISKS = 15
"""Volumes of a droplet at most: "up to fifteen volumes may be attached to a Droplet at a time", API v2, 2026."""


def _regions(value: RegionsLike) -> tuple[str, ...]:
    """Return the names of regions, checked."""
    return regions(value, "the name of a region such as 'nyc3'")


@suggesting
@frozen(kw_only=True)
class DigitalOcean(AccountHooks):
    """
    Rent droplets of DigitalOcean, with GPUs and without, on demand.

    Args:
        region: The region to rent in, or several to choose from; None for any.
        token: API token; None for that in `DIGITALOCEAN_TOKEN` or `DIGITALOCEAN_ACCESS_TOKEN`.
        image: Slug or id of the droplets' image; None for Ubuntu, with drivers where there are GPUs.
        vpc: Id of the network; None for the region's default.
        ssh_port: Where the image's SSH server listens.
        endpoint: Address of the API; None for what `DIGITALOCEAN_API_URL` says, else DigitalOcean's own.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> DigitalOcean(region="nyc3", token="hidden").region
    ('nyc3',)
    """

    region: tuple[str, ...] = field(default=None, converter=_regions)
    token: str | None = field(default=None, repr=False)
    image: str | None = None
    vpc: str | None = None
    ssh_port: int = field(default=22, converter=ssh_port)
    endpoint: str | None = None
    _account: Account = field(
        default=Factory(lambda self: Account(self.token, self.endpoint, self.ssh_port), takes_self=True),
        init=False,
        eq=False,
        repr=False,
    )

    def _wanted(self, spec: Spec) -> tuple[str, ...]:
        return (spec.region,) if spec.region is not None else self.region

    def _disks(self, spec: Spec) -> Disks[CloudDisk]:
        return Disks(provider="digitalocean", title="DigitalOcean", find=self._account.volume, wanted=spec.volumes)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: nothing but a call with the token ends the bill; seconds count, a minute at least."""
        return ProviderFacts(
            name="digitalocean",
            ends_own_bill=False,
            billing_granularity_s=1.0,
            minimum_billed_s=60.0,
            regions=self.region,
            offers_key=self._account.known_key,
            disks=DISKS,
        )

    @hookimpl
    async def skyward_preflight(self, spec: Spec) -> None:
        """
        Check the token and its permissions, the account, the regions' names, and that spot is not required.

        Raises:
            CredentialsError: If there is no token, it is refused or lacks a scope, or the account is locked.
            ConfigError: If there is no such region, VPC or disk, the pool cannot have that, or only spot will do.
        """
        if not spec.allocation.allows_on_demand:
            raise ConfigError(
                "DigitalOcean has no spot market, and allocation='spot' wants nothing else.",
                provider="digitalocean",
                hint="Write allocation='on-demand' or 'spot-if-available', or take another provider.",
            )
        # A token may be good for all that is needed, and not for this.
        locked = await self._account.api.get("/v2/account", also=(403,), read=_locked)
        if locked is not None:
            raise CredentialsError(f"The account at DigitalOcean is locked: {locked}.", provider="digitalocean")
        wanted = self._wanted(spec)
        if wanted:
            rows = await self._account.pages("/v2/regions", "regions")
            known = self._account.api.understood(rows, _slugs, "GET /v2/regions")
            check_places(wanted, known, provider="digitalocean", title="DigitalOcean", noun="region")
        if self.vpc is not None:
            await self._account.check_vpc(self.vpc)
        if spec.ttl:
            await self._account.check_renewing()
        await self._disks(spec).check(wanted, spec.nodes.ceiling, self._account.living)

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        """List what the regions sell now, with GPUs and without."""
        account = self._account
        rows = await account.pages("/v2/sizes", "sizes")
        wanted, now = await self._disks(spec).places(self._wanted(spec)), time.time()
        return account.api.understood(rows, lambda rows: to_offers(rows, wanted, now), "GET /v2/sizes")

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> Registered:
        """Register the pool's key with the account, without which a droplet gets a password by mail."""
        return await open_key(self._account, cluster.pool_id, cluster.key.public)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: Registered) -> Sequence[Instance]:
        """
        Rent a droplet for each node, as far as there are any.

        Raises:
            CapacityError: If the region has none left.
            QuotaError: If the account may have no more.
        """
        order = Order(request=request, key=infra, image=self.image, vpc=self.vpc)
        return await launch(self._account, order, self._disks(request.cluster.spec))

    @hookimpl
    async def skyward_volume_storage(self, region: str | None) -> BucketStorage | None:
        """Return Spaces in the droplets' region, by the keys in the variables that DigitalOcean's tools know."""
        return bucket_storage(region, os.environ) if region is not None else None

    @hookimpl
    async def skyward_renew(self, cluster: Cluster, ids: Sequence[str], expires_at: float) -> None:
        """Write a later expiry on droplets."""
        await self._account.renew(cluster.pool_id, ids, expires_at)

    @hookimpl
    async def skyward_release(self, cluster: Cluster, infra: Registered | None) -> None:
        """Take the pool's key out of the account, and its tags, unless they were there before."""
        if infra is None:
            await close_keys(self._account, [cluster.pool_id])
        elif infra.own:
            await self._account.api.delete(f"/v2/account/keys/{infra.id}", also=(404,))
        await forget_tags(self._account, [cluster.pool_id])

    @hookimpl
    async def skyward_end(self, instances: Sequence[Instance]) -> None:
        """
        Delete droplets, and remove what pools left that have no droplet any more.

        Raises:
            ProvisionError: If one may still be billed.
        """
        await self._account.terminate([each.id for each in instances])
        ended = {each.tags.pool_id for each in instances if each.tags is not None}
        if not ended:
            return
        alive = {each.tags.pool_id for each in await self._account.owned() if each.tags is not None}
        await close_keys(self._account, ended - alive)
        await forget_tags(self._account, ended - alive)


def _slugs(rows: Any) -> list[str]:
    return [text(row, "slug") for row in rows]


def _locked(answer: Any) -> str | None:
    """Return why an account is locked; None if it is not."""
    if text(answer, "account.status") != "locked":
        return None
    said = answer["account"].get("status_message")
    return said.rstrip(". ") if isinstance(said, str) and said else "no reason given"
