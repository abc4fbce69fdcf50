"""`warm_image=True`: machines boot from an image made of a node; whatever goes wrong there fails no pool."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest

import skyward as sky
from skyward.engine.instances.machine_image_choice import LOOK_TIMEOUT
from skyward.engine.pool.opening import PATIENCE
from skyward.hookspecs import Cluster, Instance, LaunchRequest, hookimpl
from skyward.model.instances.machine_image import MachineImage
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import Fails, Hangs, Row, ScriptedCloud

IMAGE = sky.Image()


class Studio(ScriptedCloud):
    """Keep images of machines; `dead` has machines that boot from one die, `gone` has it refused."""

    def __init__(self, *script: Any, images: Sequence[MachineImage] = (), broken: str = "", **facts: Any) -> None:
        super().__init__(*script, **{"machine_images": True, **facts})
        self.images = list(images)
        self.broken = broken

    @property
    def booted(self) -> list[str | None]:
        """List what machines were to boot from."""
        found = [(one.machine_image.id if one.machine_image else None, one.nodes) for one in self.requests]
        return [image for image, nodes in found for _ in nodes]

    def add(self, request: LaunchRequest, node: int) -> Row:
        """Rent one machine by a request."""
        if request.machine_image is not None and self.broken == "gone":
            raise sky.ConfigError(f"There is no image {request.machine_image.id}.")
        row = super().add(request, node)
        row.machine.dies = request.machine_image is not None and self.broken == "dead"
        return row

    @hookimpl
    async def skyward_machine_images(self, cluster: Cluster | None) -> Sequence[MachineImage]:
        """List them."""
        await self._asked("machine_images")
        return list(self.images)

    @hookimpl
    async def skyward_make_machine_image(self, instance: Instance, content_hash: str) -> MachineImage:
        """Make one."""
        await self._asked("make_machine_image")
        assert [1] == [host.flushed for row in self.rows if row.id == instance.id for host in row.machine.hosts]
        self.images.append(image_of(f"of-{instance.id}", content_hash=content_hash))
        return self.images[-1]

    @hookimpl
    async def skyward_delete_machine_images(self, images: Sequence[MachineImage]) -> None:
        """Delete some."""
        await self._asked("delete_machine_images")
        self.images = [each for each in self.images if each not in images]


def image_of(name: str, **facts: Any) -> MachineImage:
    """Make an image that holds what the pools here want."""
    return MachineImage(**{"id": name, "provider": "cloud", "content_hash": IMAGE.content_hash(), **facts})


def use(studio: Studio, **options: Any) -> None:
    """Open a pool, and leave it; no machine stays."""
    pool, _ = compute(studio, **{"image": IMAGE, "warm_image": True, **options})
    with pool:
        assert pool.current_nodes()
    assert [] == studio.there


def asked(studio: Studio) -> list[str]:
    """List what was asked of it about images."""
    return [hook for _, hook in studio.calls if "machine_image" in hook]


def test_without_the_option_nobody_asks_for_images(engine: SimulatedEngine) -> None:
    """Neither for one to boot from, nor for one to be made."""
    studio = Studio(images=[image_of("there")])
    use(studio, warm_image=False)
    assert ([None], []) == (studio.booted, asked(studio))


def test_the_first_pool_makes_one_that_the_next_boots_from(engine: SimulatedEngine) -> None:
    """One, however many nodes it has, after what it holds is on the disk; none of a machine that booted from one."""
    studio = Studio()
    use(studio, nodes=3)
    [made] = studio.images
    assert IMAGE.content_hash() == made.content_hash
    use(studio, nodes=2)
    assert [None, None, None, made.id, made.id] == studio.booted
    assert [made] == studio.images


def test_an_image_of_something_else_is_not_booted_from(engine: SimulatedEngine) -> None:
    """A pool boots only from what holds exactly what it wants, and makes its own."""
    studio = Studio(images=[image_of("other", content_hash="0123456789ab")])
    use(studio)
    assert [None] == studio.booted
    assert ["0123456789ab", IMAGE.content_hash()] == [each.content_hash for each in studio.images]


def test_an_image_that_is_being_made_is_neither_booted_nor_made_again(engine: SimulatedEngine) -> None:
    """The client that began it will finish it."""
    studio = Studio(images=[image_of("half", state="pending")])
    use(studio)
    assert ([None], ["half"]) == (studio.booted, [each.id for each in studio.images])


def test_an_image_that_failed_is_made_anew(engine: SimulatedEngine) -> None:
    """In its place."""
    studio = Studio(images=[image_of("bad", state="failed")])
    use(studio)
    kinds = ["machine_images", "machine_images", "delete_machine_images", "make_machine_image"]
    assert kinds == asked(studio)
    assert ["ready"] == [each.state for each in studio.images]


@pytest.mark.parametrize(
    ("script", "broken", "booted", "said"),
    [
        ([], "gone", ["there", None], "could not be used, and the pool goes on without: There is no image there"),
        ([], "dead", ["there", None], "could not be used, and the pool goes on without: cloud-0 went away"),
        ([Fails("machine_images")], "", [None], "cannot be listed: Provider 'cloud' failed in skyward_machine_images"),
        ([Hangs("machine_images")], "", [None], f"no answer to skyward_machine_images within {LOOK_TIMEOUT:g} s"),
    ],
    ids=["gone", "dead", "list", "silent"],
)
def test_an_image_that_cannot_be_used_is_done_without(
    engine: SimulatedEngine,
    script: list[Any],
    broken: str,
    booted: list[str | None],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once, with a warning that says what to type, and at no cost of the attempts that a pool has."""
    studio = Studio(*script, broken=broken, images=[image_of("there")])
    with caplog.at_level(logging.WARNING, "skyward.engine.instances.machine_image_choice"):
        use(studio, max_provision_attempts=1)
    assert booted == studio.booted
    [told] = [record.getMessage() for record in caplog.records if said in record.getMessage()]
    assert not broken or f"sky images delete {IMAGE.content_hash()}" in told


def test_all_machines_of_an_image_that_does_not_boot_are_made_anew(engine: SimulatedEngine) -> None:
    """Each once."""
    studio = Studio(broken="dead", images=[image_of("there")])
    use(studio, nodes=2, max_provision_attempts=1)
    assert ["there", "there", None, None] == studio.booted


@pytest.mark.parametrize("error", [sky.CapacityError("None."), sky.QuotaError("None.")], ids=["capacity", "quota"])
def test_an_image_is_not_blamed_for_what_the_cloud_lacks(engine: SimulatedEngine, error: Exception) -> None:
    """The next offer is asked for with the same image."""
    studio = Studio(Fails("launch", lambda: error), images=[image_of("there")])
    use(studio)
    assert ["there", "there"] == studio.booted


def test_an_image_that_cannot_be_made_is_a_warning(engine: SimulatedEngine, caplog: pytest.LogCaptureFixture) -> None:
    """The pool does its work."""
    studio = Studio(Fails("make_machine_image", lambda: sky.QuotaError("The shelf is full.")))
    with caplog.at_level(logging.WARNING, "skyward.engine.instances.machine_image_choice"):
        use(studio)
    assert "No machine image could be made of node 0" in caplog.text
    assert "The shelf is full." in caplog.text


def test_leaving_the_pool_waits_for_no_image(engine: SimulatedEngine) -> None:
    """Only for as long as nodes may take to leave in good order, so that it was asked for at least."""
    studio = Studio(Hangs("make_machine_image"))
    pool, _ = compute(studio, image=IMAGE, warm_image=True)
    pool.open()
    began = engine.now
    pool.close()
    assert "make_machine_image" in asked(studio)
    assert PATIENCE <= engine.now - began <= PATIENCE + studio.ends + 1.0


def test_a_provider_without_machine_images_says_so(engine: SimulatedEngine, caplog: pytest.LogCaptureFixture) -> None:
    """The option changes nothing there."""
    studio = Studio(images=[image_of("there")], machine_images=False)
    with caplog.at_level(logging.WARNING, "skyward.engine.instances.machine_image_choice"):
        use(studio)
    assert "warm_image=True changes nothing at cloud, which keeps no machine images." in caplog.text
    assert ([None], []) == (studio.booted, asked(studio))


def test_a_replacement_boots_from_what_there_is_by_then(engine: SimulatedEngine) -> None:
    """Images are looked for before each launch."""
    studio = Studio()
    pool, _ = compute(studio, image=IMAGE, warm_image=True)
    with pool:
        engine.until(lambda: studio.images)
        engine.loop.call_soon_threadsafe(studio.take, studio.rows[0])
        engine.until(lambda: len(studio.rows) == 2 and pool.current_nodes() == 1)
    assert [None, "of-cloud-0"] == studio.booted
