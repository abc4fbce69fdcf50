"""What RunPod sells: each number of GPUs and each cloud is asked for, as one answer says nothing of another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from math import ceil
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen

from skyward.provider import Misread, Offer, flag, listed, number, optional, readable, text, whole, word
from skyward_runpod.account import Account

if TYPE_CHECKING:
    from skyward.provider import Spec

__all__ = [
    "COUNTS",
    "CPU_COUNTS",
    "Cloud",
    "Wish",
    "counts",
    "cpu_counts",
    "cpu_offers",
    "data_centers",
    "gpu_offers",
    "kind_of",
    "most_disk_gb",
    "offers",
]

Cloud = Literal["SECURE", "COMMUNITY"]

COUNTS = (1, 2, 4, 8)
"""Numbers of GPUs that are looked at where no number is asked for."""

CPU_COUNTS = (2, 4, 8, 16, 32)
"""Numbers of vCPUs that a machine without GPUs can have."""

# Room in a container for each vCPU, in GB: no API says it, and more is refused.
_DISK_PER_VCPU, _USUAL_DISK_PER_VCPU = {"cpu5c": 15}, 10
_STOCK = {"NONE": False, "LOW": True, "MEDIUM": True, "HIGH": True}


@frozen(kw_only=True)
class Wish:
    """
    Narrow down what is sold.

    Args:
        clouds: RunPod's own data centres, those of its community, or both.
        places: The only data centres; empty for all.
        countries: The only countries, by two capital letters; empty for all.
        region: The only data centre that the pool asks for.
        networked: The data centres with the network between all of them, where that is wanted; None where it is not.
        least_cuda: The least version of CUDA that a machine's driver has to support; None for any.
        disk_gb: Room in a container that is wanted, in GB; None where any will do.
    """

    clouds: tuple[Cloud, ...]
    places: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    region: str | None = None
    networked: frozenset[str] | None = field(default=None)
    least_cuda: str | None = None
    disk_gb: float | None = None

    def allowed(self, row: object) -> tuple[str, ...]:
        """
        Return the data centres that have what is sold in stock, and that are wanted.

        Args:
            row: What is sold.

        Raises:
            Misread: If it says what cannot be understood.
        """
        rows = optional(row, "dataCenters", listed) or []
        found = [text(each, "id") for each in rows if word(each, "availability", _STOCK)]
        only = self.places if self.region is None else (self.region,)
        return tuple(
            name for name in found if (not only or name in only) and (self.networked is None or name in self.networked)
        )

    def runs_on(self, row: object) -> bool:
        """
        Return whether a machine is left whose driver is new enough; other makers' have no version of CUDA.

        Args:
            row: What is sold.

        Raises:
            Misread: If it says what cannot be understood.
        """
        rows = optional(row, "cudaVersions", listed)
        if rows is None or self.least_cuda is None:
            return True
        least = _numbers(self.least_cuda)
        return any(flag(each, "available") and _numbers(text(each, "version")) >= least for each in rows)

    @property
    def is_placed(self) -> bool:
        """Return whether it matters where a machine is."""
        return bool(self.places or self.countries or self.region or self.networked is not None)


async def offers(account: Account, spec: Spec, wish: Wish) -> list[Offer]:
    """
    List what is sold now.

    Args:
        account: Who asks.
        spec: What the user asks for.
        wish: Where.

    Raises:
        SkywardError: If one of the answers fails.
    """
    asked = [(count, cloud) for count in counts(spec) for cloud in wish.clouds]
    gpus = [_gpus(account, count, cloud, wish) for count, cloud in asked]
    # Processors are sold in the Secure Cloud alone, without the network, and their list knows no countries.
    plain = spec.accelerator is None and "SECURE" in wish.clouds and wish.networked is None and not wish.countries
    cpus = [_cpus(account, count, wish) for count in cpu_counts(spec)] if plain else []
    found = await asyncio.gather(*gpus, *cpus)
    return [offer for group in found for offer in group]


def counts(spec: Spec) -> tuple[int, ...]:
    """
    Return the numbers of GPUs to ask for.

    Args:
        spec: What the user asks for.

    >>> from skyward.model.spec.spec import Spec
    >>> counts(Spec(accelerator="H100:3")), counts(Spec(machine="NVIDIA L40S:2")), counts(Spec())
    ((3,), (2,), (1, 2, 4, 8))
    """
    if spec.accelerator is not None:
        return (max(1, ceil(spec.accelerator.count)),)
    if spec.machine is not None:
        return (max(1, kind_of(spec.machine)[1]),)
    return COUNTS


def cpu_counts(spec: Spec) -> tuple[int, ...]:
    """
    Return the numbers of vCPUs to ask for: what is left of one says nothing of another.

    Args:
        spec: What the user asks for.

    >>> from skyward.model.spec.spec import Spec
    >>> cpu_counts(Spec(machine="cpu5c:4")), cpu_counts(Spec(vcpus=6)), cpu_counts(Spec(machine="NVIDIA L40S"))
    ((4,), (8, 16, 32), ())
    """
    only = None if spec.machine is None else kind_of(spec.machine)[1]
    return tuple(count for count in CPU_COUNTS if only in (None, count) and count >= (spec.vcpus or 0))


def most_disk_gb(kind: str, vcpus: int) -> int:
    """
    Return the most room that the container of a machine without GPUs can have, in GB.

    Args:
        kind: The kind of processor.
        vcpus: How many vCPUs.

    >>> most_disk_gb("cpu3c", 2), most_disk_gb("cpu5c", 2)
    (20, 30)
    """
    return vcpus * _DISK_PER_VCPU.get(kind, _USUAL_DISK_PER_VCPU)


def kind_of(machine: str) -> tuple[str, int]:
    """
    Return the kind of GPU or processor that an instance type names, and how many of it.

    Args:
        machine: The instance type of an offer.

    >>> kind_of("NVIDIA L40S"), kind_of("NVIDIA L40S:2"), kind_of("cpu5c:4")
    (('NVIDIA L40S', 1), ('NVIDIA L40S', 2), ('cpu5c', 4))
    """
    name, colon, count = machine.rpartition(":")
    return (name, int(count)) if colon and count.isascii() and count.isdigit() else (machine, 1)


def gpu_offers(rows: Iterable[object], count: int, cloud: Cloud, wish: Wish) -> list[Offer]:
    """
    Make offers of kinds of GPUs; what a machine has besides them, RunPod does not say.

    Args:
        rows: The kinds, as the catalogue describes them for this number and cloud.
        count: How many GPUs.
        cloud: Where.
        wish: Which data centres.

    Raises:
        Misread: If none can be understood.
    """
    side = cloud.lower()

    def made(row: Any) -> Offer | None:
        name = text(row, "id")
        # What the price is where a kind is not sold is unknown.
        if not flag(row, side) or count > whole(row, f"maxCount.{side}"):
            return None
        price = number(row, f"price.{side}")
        if not price or (wish.networked is not None and text(row, "manufacturer") != "NVIDIA"):
            return None
        places = wish.allowed(row)
        return Offer(
            provider="runpod",
            instance_type=name if count == 1 else f"{name}:{count}",
            region=wish.region,
            zone=cloud,
            accelerator_name=name,
            accelerator_count=count,
            accelerator_memory_gb=whole(row, "memory"),
            architecture="x86_64",
            on_demand_price=round(price * count, 6),
            available=word(row, "availability", _STOCK) and (bool(places) or not wish.is_placed) and wish.runs_on(row),
            data={"places": list(places)} if wish.is_placed else {},
        )

    return [offer for offer in readable(rows, made, provider="runpod") if offer is not None]


def cpu_offers(rows: Iterable[object], vcpus: int, wish: Wish) -> list[Offer]:
    """
    Make offers of machines without GPUs; sizes whose container cannot hold the disk asked for are left out.

    Args:
        rows: The kinds, as the catalogue describes them for this number of vCPUs.
        vcpus: How many vCPUs.
        wish: Which data centres, and how large a container.

    Raises:
        Misread: If none can be understood.
    """

    def made(row: Any) -> Offer | None:
        name, least, most = text(row, "id"), whole(row, "vcpu.min"), whole(row, "vcpu.max")
        memory, price = number(row, "ramGbPerVcpu"), number(row, "price.securePerVcpu")
        disk, places = most_disk_gb(name, vcpus), wish.allowed(row)
        if not least <= vcpus <= most or not price or not memory or disk < (wish.disk_gb or 0):
            return None
        return Offer(
            provider="runpod",
            instance_type=f"{name}:{vcpus}",
            region=wish.region,
            zone="SECURE",
            vcpus=vcpus,
            memory_gb=vcpus * memory,
            disk_gb=disk,
            architecture="x86_64",
            on_demand_price=round(price * vcpus, 6),
            available=word(row, "availability", _STOCK) and (bool(places) or not wish.is_placed),
            data={"places": list(places)} if wish.is_placed else {},
        )

    return [offer for offer in readable(rows, made, provider="runpod") if offer is not None]


async def data_centers(account: Account) -> dict[str, bool]:
    """
    List the data centres, and whether each has the network between all of them.

    Args:
        account: Who asks.

    Raises:
        SkywardError: If it fails.
    """

    def read(answer: Any) -> dict[str, bool]:
        return {text(row, "id"): flag(row, "globalNetwork") for row in listed(answer, "dataCenters")}

    found: dict[str, bool] = await account.api.get("/v2/catalog/datacenters", read=read)
    return found


async def _gpus(account: Account, count: int, cloud: Cloud, wish: Wish) -> list[Offer]:
    countries = {"countryCodes": ",".join(wish.countries)} if wish.countries else {}
    found: list[Offer] = await account.api.get(
        "/v2/catalog/gpus",
        params={**_ASKED, "count": count, "cloud": cloud, **countries},
        read=lambda answer: gpu_offers(listed(answer, "gpus"), count, cloud, wish),
    )
    return found


async def _cpus(account: Account, vcpus: int, wish: Wish) -> list[Offer]:
    found: list[Offer] = await account.api.get(
        "/v2/catalog/cpus",
        params={**_ASKED, "vcpuCount": vcpus},
        read=lambda answer: cpu_offers(listed(answer, "cpus"), vcpus, wish),
    )
    return found


_ASKED: Mapping[str, str] = {"include": "AVAILABILITY", "product": "POD"}


def _numbers(version: str) -> tuple[int, ...]:
    """Return a version's numbers, by which 12.11 is above 12.2."""
    if not all(part.isascii() and part.isdigit() for part in version.split(".")):
        raise Misread(f"{version!r} is no version")
    return tuple(map(int, version.split(".")))
