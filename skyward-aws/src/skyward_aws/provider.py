"""The provider of machines of Amazon EC2."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from attrs import Factory, evolve, field, frozen

from skyward.provider import (
    BucketStorage,
    ConfigError,
    Disks,
    Instance,
    MachineImage,
    Offer,
    ProviderFacts,
    RegionsLike,
    SkywardError,
    hookimpl,
    nearest,
    regions,
    ssh_port,
    suggesting,
    together,
    unknown_name,
)
from skyward_aws.account import Account, Login, whose
from skyward_aws.buckets import bucket_storage
from skyward_aws.disks import DEVICES, EBSVolume, detach, find_volume, living, with_disks
from skyward_aws.fleet import drop_templates
from skyward_aws.instances import Door, check_end, described, machines, owned, renew, terminate
from skyward_aws.launching import launch
from skyward_aws.machine_image import find_image, parameter
from skyward_aws.market import offers
from skyward_aws.notice import command
from skyward_aws.order import Order
from skyward_aws.own_images import Base, create_image, delete_images, images
from skyward_aws.place import Place, close_group, close_groups, find_place
from skyward_aws.preflight import check_life, check_quota
from skyward_aws.region import Region, everywhere

if TYPE_CHECKING:
    from skyward.provider import Cluster, LaunchRequest, Spec

_log = logging.getLogger("skyward.provider.aws")

REGION = "us-east-1"
"""Where machines are rented if no region is named."""


def _regions(value: RegionsLike) -> tuple[str, ...]:
    """Return the names of regions, checked."""
    return regions(value, "the name of a region such as 'us-east-1'")


def tunnel_command(region: str, profile: str | None, port: int) -> tuple[str, ...]:
    """
    Write the command that leads to a machine through Session Manager; `{id}` in it stands for the machine's id.

    Args:
        region: Where the machine is.
        profile: Name of a profile in `~/.aws`.
        port: Where its SSH server listens.

    >>> tunnel_command("us-east-1", None, 22)[:5]
    ('aws', 'ssm', 'start-session', '--target', '{id}')
    """
    target = ("--target", "{id}", "--document-name", "AWS-StartSSHSession", "--parameters", f"portNumber={port}")
    whose = ("--profile", profile) if profile else ()
    return ("aws", "ssm", "start-session", *target, "--region", region, *whose)


@suggesting
@frozen(kw_only=True)
class AWS:
    """
    Rent machines of Amazon EC2, on demand or on the spot market.

    Credentials that are not given are looked for where AWS's own tools look.

    Args:
        region: The region to rent in, or several to choose from; None is the one that AWS's own settings name.
        zone: The only zone to rent in; None for any.
        profile: Name of a profile in `~/.aws`.
        access_key: Access key id.
        secret_key: Secret access key.
        session_token: Token of a temporary session.
        ami: Machine image; None for Ubuntu, with drivers where there are accelerators.
        user: Who logs in at that image.
        ssh_port: Where its SSH server listens.
        vpc: Network; None for the default one.
        subnet: The only subnet to use; None for one in each zone.
        security_group: Group of the machines; None for one that all pools share, made where it is missing.
        instance_profile: Name or ARN of the profile that lets machines use AWS, such as S3.
        use_ssm: Whether machines are reached through Session Manager, which needs `aws` and `session-manager-plugin`
            here and an instance profile that allows it.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> AWS(region="eu-central-1", access_key="AKIA", secret_key="hidden").region
    ('eu-central-1',)
    """

    region: tuple[str, ...] = field(default=None, converter=_regions)
    zone: str | None = None
    profile: str | None = None
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    ami: str | None = None
    user: str = "ubuntu"
    ssh_port: int = field(default=22, converter=ssh_port)
    vpc: str | None = None
    subnet: str | None = None
    security_group: str | None = None
    instance_profile: str | None = None
    use_ssm: bool = False
    _account: Account = field(
        default=Factory(lambda self: Account(self._login), takes_self=True), init=False, eq=False, repr=False
    )

    def __attrs_post_init__(self) -> None:
        if (self.access_key is None) is not (self.secret_key is None):
            raise ConfigError("access_key and secret_key go together.", hint="Give both, or neither.")
        if self.use_ssm and self.access_key is not None:
            raise ConfigError(
                "use_ssm=True needs credentials that the command aws finds by itself.",
                hint="Name a profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
            )

    @property
    def _login(self) -> Login:
        return Login(
            profile=self.profile,
            access_key=self.access_key,
            secret_key=self.secret_key,
            session_token=self.session_token,
        )

    def _door(self, cluster: Cluster) -> Door:
        region = cluster.offer.region or REGION
        tunnel = tunnel_command(region, self.profile, self.ssh_port) if self.use_ssm else ()
        return Door(user=self.user, port=self.ssh_port, key=cluster.key, tunnel=tunnel)

    def _at(self, name: str) -> Region:
        return Region(self._account, name)

    async def _home(self, name: str | None = None) -> Region:
        """Return a region, or where none is named the one to ask what concerns all of them."""
        own = self.region[0] if self.region else None
        return self._at(name or own or (await self._account.region()) or REGION)

    def _base(self, offer: Offer) -> Base:
        """Return what machines of an offer boot from without an image of ours."""
        return Base(image=self.ami or parameter(offer), user=self.user)

    async def _wanted(self, spec: Spec) -> tuple[str, ...]:
        """Return the regions to look at."""
        if spec.region is not None:
            return (spec.region,)
        return self.region or ((await self._home()).name,)

    def _disks(self, spec: Spec, regions: Sequence[str]) -> Disks[EBSVolume]:
        find = partial(find_volume, [*map(self._at, regions)])
        return Disks(provider="aws", title="AWS", find=find, wanted=spec.volumes)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: a machine that shuts down is terminated; seconds are billed, a minute at least."""
        end = ("shutdown", "-h", "now")
        return ProviderFacts(
            name="aws",
            ends_own_bill=True,
            billing_granularity_s=1.0,
            minimum_billed_s=60.0,
            spot=True,
            regions=self.region,
            offers_key=whose(self._login, os.environ),
            notice_command=command(),
            end_command=end if self.user == "root" else ("sudo", "-n", *end),
            machine_images=True,
            disks=len(DEVICES),
        )

    @hookimpl
    async def skyward_preflight(self, spec: Spec) -> None:
        """
        Check the credentials, how long they are good for, and the regions' names.

        Raises:
            CredentialsError: If there are none, they are about to run out, or AWS refuses them.
            ConfigError: If there is no such region or disk, or the pool cannot have that.
        """
        wanted, known = await self._wanted(spec), await self._account.regions()
        for region in wanted:
            # The library may be older than a region.
            if region not in known and (nearest(region, known) or "-" not in region):
                raise unknown_name(f"AWS has no region {region!r}", region, known, provider="aws")
        check_life(await self._account.ends_at(), time.time())
        await self._account.identity(wanted[0])
        missing = [name for name in ("aws", "session-manager-plugin") if self.use_ssm and shutil.which(name) is None]
        if missing:
            raise ConfigError(f"use_ssm=True needs {' and '.join(missing)} on this machine, which is not there.")
        places, holding = (self.zone,) if self.zone else (), partial(living, [*map(self._at, wanted)])
        await self._disks(spec, wanted).check(places, spec.nodes.ceiling, holding)

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        """
        List what is sold in the regions; one that fails is left out as long as another answers.

        Raises:
            SkywardError: If none answers.
        """
        wanted, zone = await self._wanted(spec), self.zone
        for volume, _ in await self._disks(spec, wanted).mounts():
            wanted, zone = (volume.region,), volume.place
        asked = (offers(self._at(region), spec, zone) for region in wanted)
        found = await asyncio.gather(*asked, return_exceptions=True)
        failures = [each for each in found if isinstance(each, BaseException)]
        for region, answer in zip(wanted, found, strict=True):
            if isinstance(answer, BaseException) and not isinstance(answer, SkywardError):
                raise answer
            if isinstance(answer, SkywardError) and len(failures) < len(wanted):
                _log.warning("%s is left out: %s", region, answer)
        if failures and len(failures) == len(wanted):
            raise failures[0]
        return [offer for offers in found if not isinstance(offers, BaseException) for offer in offers]

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> Place:
        """Find the network and the disks, and make the group where it is missing."""
        region = cluster.offer.region or (await self._wanted(cluster.spec))[0]
        mounts = await self._disks(cluster.spec, (region,)).mounts()
        place = await find_place(
            self._at(region),
            vpc=self.vpc,
            subnet=self.subnet,
            group=self.security_group,
            port=None if self.use_ssm else self.ssh_port,
        )
        return evolve(place, disks={disk.id: where for disk, where in mounts})

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: Place) -> Sequence[Instance]:
        """
        Rent a machine for each node, from zone to zone, as far as there are any.

        Raises:
            CapacityError: If no zone has any left.
            QuotaError: If the account may have no more.
            ProvisionError: If another machine still has a disk.
        """
        offer, door = request.cluster.offer, self._door(request.cluster)
        region = self._at(infra.region)
        await check_quota(region, offer, len(request.nodes), spot=request.spot)
        image = request.machine_image.id if request.machine_image is not None else self.ami
        disk = await find_image(region, offer, image)
        order = Order(request=request, place=infra, disk=disk, door=door, profile=self.instance_profile)
        disks = self._disks(request.cluster.spec, (infra.region,))
        return await launch(region, order, self.zone or offer.zone, disks)

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: Place) -> Sequence[Instance]:
        """List the pool's machines by tag; one that listings do not know yet, or without its disks, is pending."""
        region, offer, door = self._at(infra.region), cluster.offer, self._door(cluster)
        found = []
        for name, row in (await machines(region, cluster.pool_id)).items():
            rate = region.inventory.rate(name, offer.price(spot=row.get("InstanceLifecycle") == "spot"))
            instance = described(row, infra.region, door, rate=rate, on_demand=offer.on_demand_price)
            found.append(await with_disks(region, row, instance, tuple(infra.disks)))
        return found

    @hookimpl
    async def skyward_renew(self, cluster: Cluster, infra: Place | None, ids: Sequence[str], expires_at: float) -> None:
        """Write a later expiry on machines."""
        region = await self._home(infra.region if infra is not None else cluster.offer.region)
        await renew(region, ids, expires_at)

    @hookimpl
    async def skyward_terminate(self, infra: Place, ids: Sequence[str]) -> None:
        """
        End machines, and return when AWS says that they are billed no longer; disks are detached, and stay.

        Raises:
            ProvisionError: If one may still be billed.
        """
        await detach(self._at(infra.region), ids, tuple(infra.disks))
        await terminate(self._at(infra.region), ids)

    @hookimpl
    async def skyward_check_end(self, infra: Place, ids: Sequence[str]) -> None:
        """
        Ask by a dry run whether machines may be ended.

        Raises:
            CredentialsError: If they may not.
        """
        await check_end(self._at(infra.region), ids)

    @hookimpl
    async def skyward_release(self, infra: Place) -> None:
        """Remove the group, unless another pool's machines are in it."""
        if infra.own_group:
            await close_group(self._at(infra.region), infra.group)

    @hookimpl
    async def skyward_clock(self) -> float | None:
        """Return how far AWS's clock is ahead of ours."""
        return self._account.ahead

    @hookimpl
    async def skyward_volume_storage(self, region: str | None) -> BucketStorage:
        """Return S3 in the region: by the instance profile if there is one, else by the keys that are used here."""
        return await bucket_storage(await self._home(region), self.instance_profile)

    @hookimpl
    async def skyward_owned(self) -> Sequence[Instance]:
        """List every machine of ours in all regions that the account uses."""
        return await everywhere(await self._home(), owned)

    @hookimpl
    async def skyward_end(self, instances: Sequence[Instance]) -> None:
        """
        End machines wherever they are, and remove the groups that are not needed then; all regions are waited for.

        Raises:
            ProvisionError: If one may still be billed.
        """

        async def end(name: str) -> None:
            region = self._at(name)
            await terminate(region, [each.id for each in instances if each.region == name])
            await close_groups(region)
            await drop_templates(region)

        await together(*map(end, sorted({each.region for each in instances if each.region is not None})))

    @hookimpl
    async def skyward_machine_images(self, cluster: Cluster | None) -> Sequence[MachineImage]:
        """List images of ours: those on the same base in the offer's region, or all in the regions that are used."""
        if cluster is None:
            return await everywhere(await self._home(), images)
        return await images(await self._home(cluster.offer.region), self._base(cluster.offer))

    @hookimpl
    async def skyward_make_machine_image(
        self, cluster: Cluster, infra: Place, instance: Instance, content_hash: str
    ) -> MachineImage:
        """
        Make an image of a machine without a reboot.

        Raises:
            SkywardError: If EC2 makes none.
        """
        base = self._base(cluster.offer)
        return await create_image(self._at(infra.region), instance.id, content_hash, base, len(infra.disks))

    @hookimpl
    async def skyward_delete_machine_images(self, images: Sequence[MachineImage]) -> None:
        """
        Delete images with their snapshots.

        Raises:
            SkywardError: If one may go on costing money.
        """
        await delete_images(self._account, images)
