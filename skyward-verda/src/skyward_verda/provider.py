"""The provider of machines of Verda."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import Factory, field, frozen

from skyward.provider import (
    BucketStorage,
    ConfigError,
    CredentialsError,
    Disks,
    Instance,
    InstanceState,
    Offer,
    ProviderFacts,
    RegionsLike,
    first_contact,
    hookimpl,
    host_key,
    regions,
    ssh_port,
    suggesting,
    together,
)
from skyward_verda.account import Account
from skyward_verda.buckets import bucket_storage
from skyward_verda.ending import end_machines, loose, remove_loose, volume_as_instance, volumes
from skyward_verda.instances import described
from skyward_verda.launching import Order, find_image, launch
from skyward_verda.login import Wish
from skyward_verda.market import find_offers, refuse_unknown_places
from skyward_verda.place import Place, close_pools, open_place
from skyward_verda.startup import startup_script
from skyward_verda.tagging import renew
from skyward_verda.volumes import DISKS, PATH, OwnVolume, find_volume, living, mount_scripts

if TYPE_CHECKING:
    from skyward.provider import Cluster, LaunchRequest, Spec

_BILLED = 600.0


def _regions(value: RegionsLike) -> tuple[str, ...]:
    """Return the codes of locations, checked."""
    return regions(value, "the code of a location such as 'FIN-01'")


@suggesting
@frozen(kw_only=True)
class Verda:
    """
    Rent machines of Verda, on demand or as spot.

    Credentials that are not given are looked for where Verda's own command looks.

    Args:
        client_id: Id of a client of the API.
        client_secret: Its secret.
        profile: Name of a profile in `~/.verda/credentials`.
        region: The location to rent in, or several to choose from; None for all.
        image: Image that machines boot; None for Ubuntu, with drivers and CUDA where there are GPUs.
        ssh_port: Where its SSH server listens.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Verda(region="FIN-01", client_id="me", client_secret="hidden").region
    ('FIN-01',)
    """

    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    profile: str | None = None
    region: tuple[str, ...] = field(default=None, converter=_regions)
    image: str | None = None
    ssh_port: int = field(default=22, converter=ssh_port)
    _account: Account = field(
        default=Factory(lambda self: Account(self._wish, self.ssh_port), takes_self=True),
        init=False,
        eq=False,
        repr=False,
    )

    def __attrs_post_init__(self) -> None:
        if (self.client_id is None) is not (self.client_secret is None):
            raise ConfigError("client_id and client_secret go together.", hint="Give both, or neither.")

    @property
    def _wish(self) -> Wish:
        return Wish(client_id=self.client_id, client_secret=self.client_secret, profile=self.profile)

    def _disks(self, spec: Spec) -> Disks[OwnVolume]:
        return Disks(provider="verda", title="Verda", find=partial(find_volume, self._account.api), wanted=spec.volumes)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: a machine that is off is billed as well, and no network is the machines' own."""
        return ProviderFacts(
            name="verda",
            ends_own_bill=False,
            billing_granularity_s=_BILLED,
            nodes_reach_each_other=False,
            spot=True,
            regions=self.region,
            offers_ttl_s=60.0,
            offers_key=self._wish.identity(os.environ),
            disks=DISKS,
        )

    @hookimpl
    async def skyward_preflight(self, spec: Spec) -> None:
        """
        Check the credentials, what is left of the balance, and the locations' codes.

        Raises:
            CredentialsError: If there are none, Verda refuses them, or the account has no credit.
            ConfigError: If there is no such location or disk, or the pool cannot have that.
        """
        api = self._account.api
        amount = await api.get("/balance", read=lambda answer: answer.get("amount") if answer else None)
        if isinstance(amount, int | float) and amount <= 0:
            raise CredentialsError(
                f"The account at Verda has no credit left: its balance is {amount:g}.",
                provider="verda",
                hint="Add credit in Verda's console.",
            )
        wanted = (spec.region,) if spec.region is not None else self.region
        if wanted:
            await refuse_unknown_places(api, wanted)
        await self._disks(spec).check(wanted, spec.nodes.ceiling, partial(living, api))
        await self._mounting(spec)

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        """
        List what is sold: an offer for each type in each location, with the markets that have any left.

        Raises:
            ConfigError: If the spec names a type that does not exist.
        """
        places = await self._disks(spec).places((spec.region,) if spec.region is not None else self.region)
        return await find_offers(self._account.api, spec, places)

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> Place:
        """Register the pool's key, and the script that its machines run at their first boot."""
        region = cluster.offer.region
        if region is None:
            raise ConfigError(f"The offer {cluster.offer.key} names no location.", provider="verda")
        own = host_key(cluster.key, cluster.pool_id)
        deadline = first_contact(cluster.spec.ttl)
        script = startup_script(cluster.key.public, own, deadline, await self._mounting(cluster.spec))
        return await open_place(self._account.api, cluster.pool_id, region, cluster.key.public, script)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: Place) -> Sequence[Instance]:
        """
        Rent a machine for each node, as far as the location has any.

        Raises:
            CapacityError: If it has none left.
            QuotaError: If the account may have no more.
        """
        cluster = request.cluster
        name, gpus = cluster.offer.instance_type, bool(cluster.offer.accelerator_count)
        image = await find_image(self._account, name, self.image, gpus=gpus)
        order = Order(request=request, place=infra, image=image)
        return await launch(self._account, order, self._disks(cluster.spec))

    async def _mounting(self, spec: Spec) -> str:
        """Return the commands that mount the disks on a machine; empty without any."""
        mounts = await self._disks(spec).mounts()
        return self._account.api.understood(mounts, mount_scripts, f"GET {PATH}") if mounts else ""

    @hookimpl
    async def skyward_instances(self, cluster: Cluster) -> Sequence[Instance]:
        """List the pool's machines by their names; one just rented that lists do not show is asked for by its id."""
        return await self._account.instances(cluster)

    @hookimpl
    async def skyward_renew(self, ids: Sequence[str], expires_at: float) -> None:
        """Write a later expiry on machines, as far as they have tags."""
        await renew(self._account, ids, expires_at)

    @hookimpl
    async def skyward_terminate(self, cluster: Cluster, ids: Sequence[str]) -> None:
        """
        Delete machines with their disks, and return when Verda lists neither.

        Raises:
            ProvisionError: If one may still be billed.
        """
        await end_machines(self._account, ids)
        await remove_loose(self._account, [cluster.pool_id])

    @hookimpl
    async def skyward_release(self, cluster: Cluster, infra: Place | None) -> None:
        """Remove the key and the script, and disks that outlived their machines."""
        region = infra.region if infra is not None else None
        await together(
            close_pools(self._account.api, [cluster.pool_id], region), remove_loose(self._account, [cluster.pool_id])
        )

    @hookimpl
    async def skyward_volume_storage(self) -> BucketStorage:
        """Return Verda's object storage, by the keys that Verda's own command keeps."""
        return bucket_storage(self._wish, os.environ)

    @hookimpl
    async def skyward_clock(self) -> float | None:
        """Return how far the cloud's clock is ahead of ours."""
        return self._account.api.ahead

    @hookimpl
    async def skyward_owned(self) -> Sequence[Instance]:
        """List every machine of ours, and every disk that outlived its machine."""
        disks = await volumes(self._account)
        rows = await self._account.rows()
        machines = [each for each in map(described, rows) if each.state is not InstanceState.ENDED]
        return [*machines, *map(volume_as_instance, loose(disks, rows))]

    @hookimpl
    async def skyward_end(self, instances: Sequence[Instance]) -> None:
        """
        Delete machines and disks, and the keys and scripts of pools that have nothing left.

        Raises:
            ProvisionError: If one may still be billed.
        """
        await end_machines(self._account, [each.id for each in instances])
        pools = {each.tags.pool_id for each in instances if each.tags is not None and each.tags.pool_id}
        await remove_loose(self._account, pools)
        there = {each.tags.pool_id for each in await self.skyward_owned() if each.tags is not None}
        if over := pools - there:
            await close_pools(self._account.api, over)
