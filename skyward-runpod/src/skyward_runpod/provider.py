"""The provider of pods of RunPod."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import Factory, field, frozen
from attrs.converters import optional

from skyward.provider import (
    END_COMMAND,
    AccountHooks,
    BucketStorage,
    CloudDisk,
    ConfigError,
    Disks,
    DockerImage,
    Instance,
    Offer,
    ProviderFacts,
    RegionsLike,
    buckets_of,
    check_places,
    choice,
    disks_of,
    docker_image,
    gigabytes,
    hookimpl,
    several,
    suggesting,
    text_setting,
)
from skyward_runpod.account import Account
from skyward_runpod.buckets import bucket_storage
from skyward_runpod.launching import BASE_CUDA, Order, launch
from skyward_runpod.market import Cloud, Wish, data_centers, offers

if TYPE_CHECKING:
    from skyward.provider import LaunchRequest, Spec

__all__ = ["RunPod"]

DISKS = 1
"""Network volumes of a pod at most: `mounts.network` has `maxItems` 1 in the description of RunPod's REST v2."""

_CLOUDS: dict[str, tuple[Cloud, ...]] = {
    "secure": ("SECURE",),
    "community": ("COMMUNITY",),
    "all": ("SECURE", "COMMUNITY"),
}


def _cloud(value: str) -> str:
    """Return which of RunPod's clouds to rent in, checked."""
    given: object = value
    return choice(given.lower() if isinstance(given, str) else given, "cloud", tuple(_CLOUDS))


def _image(value: str | DockerImage) -> DockerImage:
    """Return an image, checked."""
    return docker_image(value, "container_image")


def _places(value: RegionsLike) -> tuple[str, ...]:
    """Return the names of data centres, checked."""
    return several(value, "data_center", "the name of a data centre")


def _countries(value: RegionsLike) -> tuple[str, ...]:
    """Return the codes of countries, checked."""
    names = tuple(name.upper() for name in several(value, "country", "the code of a country"))
    if wrong := [name for name in names if len(name) != 2 or not name.isascii() or not name.isalpha()]:
        raise ConfigError(f"country={wrong[0]!r} is no code of a country.", hint='Write two letters, such as "RO".')
    return names


def _disk_gb(value: float | str) -> float:
    """Return an amount of disk space in GB, checked."""
    return gigabytes(value, "disk_gb")


def _registry(value: str) -> str:
    """Return the id of a credential, checked."""
    return text_setting(value, "registry")


@suggesting
@frozen(kw_only=True)
class RunPod(AccountHooks):
    """
    Rent pods of RunPod, on demand: it sells no spot machines over the API that is spoken here (REST v2).

    Args:
        api_key: Key of the account; None for that in `RUNPOD_API_KEY`.
        cloud: `"secure"` for RunPod's own data centres, `"community"` for machines of its community, or `"all"`.
        data_center: The only data centre to rent in, such as `"EU-RO-1"`, or several; None for any.
        country: The only country to rent in, by its code such as `"RO"`, or several; None for any.
        container_image: What pods are made from, as one of `sky.containers` or by name; None for RunPod's base image.
        registry: Id of the credential in the account that the image is pulled with.
        disk_gb: Room in a container, in GB, where the pool says nothing.
        global_networking: Whether pods join RunPod's network between its data centres, of about 100 Mbit/s, where nodes
            reach each other; for NVIDIA GPUs in the Secure Cloud.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> from skyward.model.spec.container import cuda
    >>> RunPod(api_key="rpa_x", data_center="EU-RO-1", container_image=cuda("12.8"))
    RunPod(cloud='secure', data_center=('EU-RO-1',), country=(), container_image=DockerImage(...), registry=None, ...)
    """

    api_key: str | None = field(default=None, repr=False)
    cloud: str = field(default="secure", converter=_cloud)
    data_center: tuple[str, ...] = field(default=None, converter=_places)
    country: tuple[str, ...] = field(default=None, converter=_countries)
    container_image: DockerImage | None = field(default=None, converter=optional(_image))
    registry: str | None = field(default=None, converter=optional(_registry))
    disk_gb: float | None = field(default=None, converter=optional(_disk_gb))
    global_networking: bool = False
    _account: Account = field(
        default=Factory(lambda self: Account(self.api_key), takes_self=True), init=False, eq=False, repr=False
    )

    def __attrs_post_init__(self) -> None:
        if self.global_networking and self.cloud != "secure":
            raise ConfigError(
                f'global_networking=True goes with cloud="secure", not with cloud={self.cloud!r}.',
                hint="The Community Cloud has no such network.",
            )

    def _disks(self, spec: Spec) -> Disks[CloudDisk]:
        return Disks(provider="runpod", title="RunPod", find=self._account.volume, wanted=spec.volumes)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: a pod that runs terminates with its own key, and reaches others if networked."""
        return ProviderFacts(
            name="runpod",
            ends_own_bill="running",
            billing_granularity_s=1.0,
            nodes_reach_each_other=self.global_networking,
            end_command=END_COMMAND,
            strangers=self.cloud != "secure",
            disks=DISKS,
        )

    @hookimpl
    async def skyward_preflight(self, spec: Spec) -> None:
        """
        Check the key, and that what is asked for can be.

        Raises:
            CredentialsError: If there is no key, or RunPod refuses it.
            ConfigError: If spot machines are asked for, there is no such data centre or disk, or that is elsewhere.
        """
        if not spec.allocation.allows_on_demand or spec.allocation.least_spot(spec.nodes.desired):
            raise ConfigError(
                f"allocation={str(spec.allocation)!r} cannot be met: RunPod sells no spot machines over REST v2.",
                provider="runpod",
                hint='Write allocation="on-demand", or take another provider.',
            )
        await self._account.inventory.rows(within=0.0)
        if asked := (*self.data_center, *((spec.region,) if spec.region else ())):
            known = await data_centers(self._account)
            check_places(asked, known, provider="runpod", title="RunPod", noun="data centre")
        if disks_of(spec.volumes) and self.cloud == "community":
            raise ConfigError(
                'sky.Disk does not go with cloud="community".',
                provider="runpod",
                hint="Only the Secure Cloud has network volumes.",
            )
        await self._disks(spec).check((spec.region,) if spec.region else self.data_center)

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        """
        List what is sold now, in the number of GPUs that is asked for.

        Raises:
            SkywardError: If RunPod does not answer.
        """
        networked = None
        if self.global_networking:
            reached = await data_centers(self._account)
            networked = frozenset(name for name, joined in reached.items() if joined)
        wish = Wish(
            # Only the Secure Cloud has network volumes.
            clouds=_CLOUDS["secure" if disks_of(spec.volumes) else self.cloud],
            places=await self._disks(spec).places(self.data_center),
            countries=self.country,
            region=spec.region,
            networked=networked,
            least_cuda=self.container_image.cuda if self.container_image is not None else BASE_CUDA,
            disk_gb=spec.disk_gb or self.disk_gb,
        )
        return await offers(self._account, spec, wish)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        """
        Rent a pod for each node, as far as there are any.

        Raises:
            CapacityError: If there is none.
            QuotaError: If the account may have none.
        """
        order = Order(
            request=request,
            image=self.container_image,
            disk_gb=self.disk_gb,
            registry=self.registry,
            networked=self.global_networking,
            mounts={disk.id: where for disk, where in await self._disks(request.cluster.spec).mounts()},
        )
        return await launch(self._account, order)

    @hookimpl
    async def skyward_volume_storage(self, spec: Spec) -> BucketStorage | None:
        """
        Return the S3 API of the data centre in which the network volumes are that are given as buckets.

        Raises:
            ConfigError: If one is not there, not written by its id, or in another data centre than the others.
            CredentialsError: If there are no keys for it.
        """
        buckets = buckets_of(spec.volumes)
        volumes = [await self._account.volume(bucket) for bucket in buckets]
        return bucket_storage(buckets, volumes, os.environ) if buckets else None
