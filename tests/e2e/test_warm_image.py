"""`warm_image=True`: machines boot from an image that was made of a node; whatever goes wrong there fails no pool."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import define, evolve, field

import skyward as sky
from skyward.hookspecs import hookimpl
from skyward.model.cluster import Cluster
from skyward.model.machine import Instance, LaunchRequest, LocalAddress, ProviderFacts
from skyward.model.machine_image import MachineImage
from skyward.model.offer import Offer
from skyward.model.spec import Spec
from skyward.providers.local import Local

pytestmark = pytest.mark.slow

IMAGE = sky.Image()


@define(eq=False)
class Studio:
    """Rent this machine, and keep images of it; `broken` names what fails."""

    keeps: bool = True
    broken: str = ""
    images: list[MachineImage] = field(factory=list)
    booted: list[str | None] = field(factory=list)
    asked: list[str] = field(factory=list)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="studio", ends_own_bill=True, machine_images=self.keeps)

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
        if image is not None and self.broken == "gone":
            raise sky.ConfigError(f"There is no image {image.id}.")
        machines = await Local().skyward_launch(request, infra)
        if image is not None and self.broken == "dead":
            return [evolve(each, address=LocalAddress("/proc/nothing/here")) for each in machines]
        return machines

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
        self.asked.append("list")
        if self.broken == "list":
            raise sky.ProvisionError("The shelf is locked.")
        return list(self.images)

    @hookimpl
    async def skyward_make_machine_image(self, instance: Instance, content_hash: str) -> MachineImage:
        self.asked.append("make")
        if self.broken == "slow":
            await asyncio.Event().wait()
        if self.broken == "make":
            raise sky.QuotaError("The shelf is full.")
        self.images.append(image_of(f"of-{len(self.asked)}", content_hash=content_hash))
        return self.images[-1]

    @hookimpl
    async def skyward_delete_machine_images(self, images: Sequence[MachineImage]) -> None:
        self.asked.append("delete")
        self.images = [each for each in self.images if each not in images]


@sky.function
def double(x: int) -> int:
    """Double."""
    return 2 * x


def image_of(name: str, **facts: Any) -> MachineImage:
    """Make an image that holds what the pools here want."""
    return MachineImage(**{"id": name, "provider": "studio", "content_hash": IMAGE.content_hash(), **facts})


def use(studio: Studio, **options: Any) -> None:
    """Open a pool, have it do its work, and leave it."""
    given = {"image": IMAGE, "warm_image": True, "console": False, "logging": False, **options}
    with sky.Compute(provider=studio, **given) as pool:
        assert 4 == double(2) >> pool


def test_without_the_option_nobody_asks_for_images() -> None:
    """Neither for one to boot from, nor for one to be made."""
    studio = Studio(images=[image_of("there")])
    use(studio, warm_image=False)
    assert ([None], []) == (studio.booted, studio.asked)


def test_the_first_pool_makes_an_image_that_the_next_one_boots_from() -> None:
    """One, however many nodes it has; and none of a machine that booted from one."""
    studio = Studio()
    use(studio, nodes=3)
    [made] = studio.images
    assert IMAGE.content_hash() == made.content_hash
    use(studio, nodes=2)
    assert [None, None, None, made.id, made.id] == studio.booted
    assert [made] == studio.images


def test_another_image_of_the_environment_has_a_machine_image_of_its_own() -> None:
    """A pool boots only from what holds exactly what it wants."""
    studio = Studio(images=[image_of("other", content_hash="0123456789ab")])
    use(studio)
    assert [None] == studio.booted
    assert ["0123456789ab", IMAGE.content_hash()] == [each.content_hash for each in studio.images]


def test_an_image_that_is_being_made_is_neither_booted_nor_made_again() -> None:
    """Whoever began it will finish it."""
    studio = Studio(images=[image_of("half", state="pending")])
    use(studio)
    assert ([None], ["half"]) == (studio.booted, [each.id for each in studio.images])


def test_an_image_that_failed_is_made_anew() -> None:
    """In its place."""
    studio = Studio(images=[image_of("bad", state="failed")])
    use(studio)
    assert ["list", "list", "delete", "make"] == studio.asked
    assert ["ready"] == [each.state for each in studio.images]


@pytest.mark.parametrize(
    ("broken", "booted", "said"),
    [
        ("gone", ["there", None], "The machine image there could not be used, and the pool goes on without: There is"),
        ("dead", ["there", None], "The machine image there could not be used, and the pool goes on without:"),
        ("list", [None], "Machines boot without a warm image, because those there are cannot be listed: The shelf is"),
    ],
)
def test_an_image_that_cannot_be_used_is_done_without(
    broken: str, booted: list[str | None], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Once, with a warning that says what to type, and at no cost of the attempts that a pool has."""
    studio = Studio(broken=broken, images=[image_of("there")])
    with caplog.at_level(logging.WARNING, "skyward"):
        use(studio, max_provision_attempts=1)
    assert booted == studio.booted
    told = [record.getMessage() for record in caplog.records if said in record.getMessage()]
    assert 1 == len(told)
    assert broken == "list" or f"sky images delete {IMAGE.content_hash()}" in told[0]


def test_all_machines_of_an_image_that_does_not_boot_are_made_anew() -> None:
    """Each once."""
    studio = Studio(broken="dead", images=[image_of("there")])
    use(studio, nodes=2, max_provision_attempts=1)
    assert ["there", "there", None, None] == studio.booted


def test_an_image_that_cannot_be_made_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The pool does its work."""
    studio = Studio(broken="make")
    with caplog.at_level(logging.WARNING, "skyward"):
        use(studio)
    assert "No machine image could be made of node 0" in caplog.text
    assert "The shelf is full." in caplog.text


def test_leaving_the_pool_waits_for_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only for as long as nodes may take to leave in good order, so that it was asked for at least."""
    monkeypatch.setattr("skyward.engine.opening.PATIENCE", 0.5)
    studio = Studio(broken="slow")
    began = time.monotonic()
    use(studio)
    assert "make" in studio.asked
    assert time.monotonic() - began < 30


def test_a_provider_without_machine_images_says_so(caplog: pytest.LogCaptureFixture) -> None:
    """The option changes nothing there."""
    studio = Studio(keeps=False, images=[image_of("there")])
    with caplog.at_level(logging.WARNING, "skyward"):
        use(studio)
    assert "warm_image=True changes nothing at studio, which keeps no machine images." in caplog.text
    assert ([None], []) == (studio.booted, studio.asked)
