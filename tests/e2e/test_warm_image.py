"""`warm_image=True`, end to end: machines boot from an image that was made of a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import define, field

import skyward as sky
from skyward.hookspecs import hookimpl
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import Instance, LaunchRequest, ProviderFacts
from skyward.model.instances.machine_image import MachineImage
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec
from skyward.providers.local import Local

pytestmark = pytest.mark.slow

IMAGE = sky.Image()


@define(eq=False)
class Studio:
    """Rent this machine, and keep images of it."""

    images: list[MachineImage] = field(factory=list)
    booted: list[str | None] = field(factory=list)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="studio", ends_own_bill=True, machine_images=True)

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        return (Offer(provider="studio", instance_type="one", on_demand_price=1.0),)

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> str:
        return await Local().skyward_open(cluster)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str) -> Sequence[Instance]:
        image = request.machine_image
        self.booted += [image.id if image is not None else None for _ in request.nodes]
        return await Local().skyward_launch(request, infra)

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: str) -> Sequence[Instance]:
        return await Local().skyward_instances(cluster, infra)

    @hookimpl
    async def skyward_terminate(self, infra: str, ids: Sequence[str]) -> None:
        await Local().skyward_terminate(infra, ids)

    @hookimpl
    async def skyward_release(self, infra: str) -> None:
        await Local().skyward_release(infra)

    @hookimpl
    async def skyward_machine_images(self, cluster: Cluster | None) -> Sequence[MachineImage]:
        return list(self.images)

    @hookimpl
    async def skyward_make_machine_image(self, instance: Instance, content_hash: str) -> MachineImage:
        self.images.append(MachineImage(id=f"of-{instance.id}", provider="studio", content_hash=content_hash))
        return self.images[-1]


@sky.function
def double(x: int) -> int:
    """Double."""
    return 2 * x


def use(studio: Studio, **options: Any) -> None:
    """Open a pool, have it do its work, and leave it."""
    given = {"image": IMAGE, "warm_image": True, "console": False, "logging": False, **options}
    with sky.Compute(provider=studio, **given) as pool:
        assert 4 == double(2) >> pool


def test_the_first_pool_makes_an_image_that_the_next_one_boots_from() -> None:
    """One, however many nodes it has; and none of a machine that booted from one."""
    studio = Studio()
    use(studio, nodes=3)
    [made] = studio.images
    assert IMAGE.content_hash() == made.content_hash
    use(studio, nodes=2)
    assert [None, None, None, made.id, made.id] == studio.booted
    assert [made] == studio.images
