"""Block storage of the user: found before anything is rented, mounted at the droplet's boot, and never deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError, ProvisionError
from skyward.model.instances.machine import InstanceState
from skyward.model.spec.spec import Spec
from skyward.providers import disks as waiting
from tests.clouds.digitalocean.client import client, refusal, run
from tests.clouds.digitalocean.cloud import CPU, Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]


@pytest.fixture
def volumes(ocean: Cloud) -> Iterator[Cloud]:
    """Give a cloud with volumes, which have to be there in the end, and be free; no test may have asked for more."""
    ocean.volume()
    ocean.volume("elsewhere", region="tor1")
    yield ocean
    until(lambda: {"data": [], "elsewhere": []} == {name: ocean.volumes().get(name) for name in ("data", "elsewhere")})
    asked = {each["name"] for each in ocean.calls() if "/volumes" in each["name"]}
    assert {"GET /v2/volumes"} >= asked


@sky.function
def note(folder: str, name: str) -> list[str]:
    """Leave a file in the volume, and tell which are there."""
    Path(folder, name).touch()
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.usefixtures("with_hosts")
def test_the_droplet_has_the_volume_and_what_is_in_it_outlives_the_droplet(volumes: Cloud, tmp_path: Path) -> None:
    """It is mounted before any login is let in; the next pool finds what the last one wrote."""
    where = str(tmp_path / "data")
    options: dict[str, Any] = {"machine": CPU, "console": False, "bootstrap_timeout": 20}
    for turn, name in enumerate(("one", "two")):
        with sky.Compute(provider=volumes.provider(), volumes=[sky.Disk("data", mount=where)], **options) as pool:
            [row] = volumes.alive()
            assert ("nyc3", [int(row["id"])]) == (row["region"], volumes.volumes()["data"])
            assert ["one", "two"][: turn + 1] == note(where, name) >> pool
            device = f"{row['base']}/dev/disk/by-id/scsi-0DO_Volume_data"
            assert f"mount -o noatime {device} {where}\n" == Path(row["base"], "asked").read_text()
    assert [] == volumes.alive()


@pytest.mark.usefixtures("with_hosts")
def test_a_volume_without_a_filesystem_is_not_formatted_and_has_no_directory(
    volumes: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that writes there hears so, and does not write to the droplet's own disk."""
    monkeypatch.setattr("skyward.plan.offers.cloud_disk.mount_disk.__defaults__", (0.0, "noatime"))
    volumes.volume("raw", kind="")

    async def scenario() -> None:
        async with client(volumes.provider(), volumes=[sky.Disk("raw", mount=str(tmp_path / "raw"))]) as opened:
            await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            base = Path(volumes.alive()[0]["base"])
            assert "no filesystem was found" in (base / "boot.log").read_text()
            assert not (base / "asked").exists()
            assert not (tmp_path / "raw").exists()

    run(scenario())


def test_a_volume_that_a_droplet_had_which_has_just_ended_is_waited_for(
    volumes: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a node is replaced; not for ever, and a launch that is asked for twice does not wait for itself."""
    volumes.ask("detaches", 3)

    async def scenario() -> None:
        async with client(volumes.provider(), volumes=[sky.Disk("data", mount=str(tmp_path / "data"))]) as opened:
            [first] = await opened.launch()
            await opened.end(first.id)
            before = len(volumes.calls("GET /v2/volumes"))
            [second] = await opened.launch(token="again")
            assert 4 == len(volumes.calls("GET /v2/volumes")) - before
            assert [second.id] == [one.id for one in await opened.launch(token="again")]
            assert [int(second.id)] == volumes.volumes()["data"]
            monkeypatch.setattr(waiting.until_free, "__defaults__", (0.0,))
            error = await refusal(opened.launch())
            assert ProvisionError is type(error)
            assert f"is still attached to {second.id} after 0 s" in str(error)
            assert 1 == len(volumes.alive())
        # Its next pool would be refused, if one that is gone counted.
        again = Spec(provider=volumes.provider(), volumes=[sky.Disk("data")])
        await again.provider.skyward_preflight(again)

    run(scenario())


@pytest.mark.parametrize(
    ("disk", "settings", "wishes", "words"),
    [
        ("dta", {}, {}, "DigitalOcean has no disk 'dta'. Did you mean 'data'?"),
        ("data", {"region": "tor1"}, {}, "is in nyc3, and machines are asked for in tor1."),
        ("data", {}, {"region": "tor1"}, "is in nyc3, and machines are asked for in tor1."),
        ("data", {}, {"nodes": 2}, "one machine at a time, and the pool may have 2 nodes. Write nodes=1"),
        ("data", {}, {"nodes": (1, 4)}, "one machine at a time, and the pool may have 4 nodes."),
    ],
)
def test_a_volume_that_cannot_be_had_is_refused_before_renting(
    volumes: Cloud, disk: str, settings: dict[str, str], wishes: dict[str, Any], words: str
) -> None:
    """With what there is instead."""
    spec = Spec(provider=volumes.provider(**settings), volumes=[sky.Disk(disk)], **wishes)
    error = run(refusal(spec.provider.skyward_preflight(spec)))
    assert ConfigError is type(error)
    assert words in str(error)
    assert [] == volumes.calls("POST /v2/droplets")


def test_a_volume_that_somebody_has_is_refused_before_renting(volumes: Cloud, tmp_path: Path) -> None:
    """By the droplet's id; the volume stays with it."""

    async def scenario() -> None:
        async with client(volumes.provider(), volumes=[sky.Disk("data", mount=str(tmp_path / "data"))]) as opened:
            [instance] = await opened.launch()
            spec = Spec(provider=volumes.provider(), volumes=[sky.Disk("data")])
            error = await refusal(spec.provider.skyward_preflight(spec))
            assert f"is attached to {instance.id}, and to one machine at a time." in str(error)
            assert [int(instance.id)] == volumes.volumes()["data"]
            # The command that ends what pools left does not touch it either.
            await spec.provider.skyward_end(await spec.provider.skyward_owned())

    run(scenario())


def test_offers_are_those_of_the_volumes_region(volumes: Cloud) -> None:
    """And nothing is asked about volumes where none is wanted."""
    assert {"nyc3", "tor1"} < {offer.region for offer in run(volumes.provider().skyward_offers(Spec()))}
    assert [] == volumes.calls("GET /v2/volumes")
    offers = run(volumes.provider().skyward_offers(Spec(volumes=[sky.Disk("elsewhere")])))
    assert {"tor1"} == {offer.region for offer in offers}


@pytest.mark.usefixtures("with_hosts")
def test_a_droplet_has_several_disks_each_in_its_folder(volumes: Cloud, tmp_path: Path) -> None:
    """All are attached by the call that makes the droplet, and unmounted before it is deleted."""
    volumes.volume("scratch")
    wanted = {name: str(tmp_path / name) for name in ("scratch", "data")}
    disks = [sky.Disk(name, mount=where) for name, where in wanted.items()]
    with sky.Compute(
        provider=volumes.provider(), volumes=disks, machine=CPU, console=False, bootstrap_timeout=20
    ) as pool:
        [row] = volumes.alive()
        assert {name: [int(row["id"])] for name in wanted} == {name: volumes.volumes()[name] for name in wanted}
        for name, where in wanted.items():
            assert [name] == note(where, name) >> pool
        asked = Path(row["base"], "asked")
    assert {f"umount {where}" for where in wanted.values()} <= set(asked.read_text().splitlines())
    until(lambda: [] == volumes.volumes()["scratch"])


@pytest.mark.usefixtures("with_hosts")
def test_a_disk_that_cannot_be_unmounted_is_said_and_keeps_no_droplet(
    volumes: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in use still: the pool ends in time, and its user hears of it."""
    monkeypatch.setattr("skyward.plan.offers.cloud_disk.unmount_disks.__defaults__", (0.0,))
    events: list[object] = []
    where = str(tmp_path / "data")
    with sky.Compute(
        provider=volumes.provider(),
        volumes=[sky.Disk("data", mount=where)],
        machine=CPU,
        console=False,
        bootstrap_timeout=20,
        on_event=events.append,
    ):
        [row] = volumes.alive()
        Path(row["base"], "busy").touch()
    said = [str(one) for one in events if "may lack what was written last" in str(one)]
    assert 1 == len(said)
    assert f"{where} could not be unmounted: umount: {where}: target is busy." in said[0]
    assert [] == volumes.alive()
