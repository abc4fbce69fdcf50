"""EBS volumes of the user: found before anything is rented, attached once a machine runs, and never deleted."""

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
from tests.clouds.aws.client import client, refusal, run
from tests.clouds.aws.cloud import Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

OPTIONS: dict[str, Any] = {"machine": "m7i.large", "console": False, "bootstrap_timeout": 20}


@pytest.fixture
def disks(aws: Cloud) -> Iterator[Cloud]:
    """Give a cloud with volumes, which have to be there in the end, and be free."""
    aws.volume()
    aws.volume("elsewhere", "us-east-1c")
    aws.volume("far", "eu-west-1a")
    yield aws
    until(lambda: all(aws.volumes()[name] == [] for name in ("data", "elsewhere", "far")))
    assert [] == [call["name"] for call in aws.calls() if "DeleteVolume" in call["name"]]
    aws.ask("drop", {})


def named(aws: Cloud, action: str) -> list[dict[str, str]]:
    """Return the parameters of every call of one kind."""
    return [call["params"] for call in aws.calls() if call["name"] == f"ec2:{action}"]


@sky.function
def note(folder: str, name: str) -> list[str]:
    """Leave a file on the disk, and tell which are there."""
    Path(folder, name).touch()
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.usefixtures("with_hosts")
def test_the_machine_has_the_disk_and_what_is_on_it_outlives_the_machine(disks: Cloud, tmp_path: Path) -> None:
    """It is mounted by the UUID of its file system before any login is let in, and unmounted in the end."""
    where = str(tmp_path / "data")
    for turn, allocation in enumerate(("on-demand", "spot")):
        provider, volumes = disks.provider(user="root"), [sky.Disk("data", mount=where)]
        with sky.Compute(provider=provider, volumes=volumes, allocation=allocation, **OPTIONS) as pool:
            [row] = disks.alive()
            assert ("us-east-1b", [row["id"]]) == (row["zone"], disks.volumes()["data"])
            assert ["on-demand", "spot"][: turn + 1] == note(where, allocation) >> pool
            asked = Path(row["base"], "asked")
            [mounted] = [line for line in asked.read_text().splitlines() if line.startswith("mount ")]
            assert mounted.startswith("mount -o noatime UUID=vol-")
        assert f"umount {where}" in asked.read_text().splitlines()
    assert [] == disks.alive()


@pytest.mark.usefixtures("with_hosts")
def test_a_blank_disk_gets_a_file_system_and_no_other_does(disks: Cloud, tmp_path: Path) -> None:
    """Two disks are told apart by their serial numbers, whatever order they come in."""
    disks.volume("new", blank=True)
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    volumes = [sky.Disk("new", mount=new), sky.Disk("data", mount=old)]
    with sky.Compute(provider=disks.provider(), volumes=volumes, **OPTIONS) as pool:
        [row] = disks.alive()
        assert {"data": [row["id"]], "new": [row["id"]]} == {
            name: held for name, held in disks.volumes().items() if held
        }
        assert (["a"], ["b"]) == (note(old, "a") >> pool, note(new, "b") >> pool)
        asked = Path(row["base"], "asked").read_text().splitlines()
        assert 1 == len([line for line in asked if line.startswith("mkfs")])
    with sky.Compute(provider=disks.provider(), volumes=sky.Disk("new", mount=new), **OPTIONS) as pool:
        [row] = disks.alive()
        assert ["b", "c"] == note(new, "c") >> pool
        assert "mkfs" not in Path(row["base"], "asked").read_text()


def test_it_is_attached_once_the_machine_runs_and_detached_before_it_ends(disks: Cloud) -> None:
    """Until then the machine counts as pending; once it had its disk it does not get it again."""

    async def scenario() -> None:
        async with client(disks.provider(), volumes=[sky.Disk("data")]) as opened:
            assert ["/mnt/data"] == list(opened.infra.disks.values())
            [instance] = await opened.launch()
            assert [] == disks.volumes()["data"]
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            assert [instance.id] == disks.volumes()["data"]
            [attached] = named(disks, "AttachVolume")
            assert "/dev/sdf" == attached["Device"]
            await opened.end(instance.id)
            assert [] == disks.volumes()["data"]
            [detached] = named(disks, "DetachVolume")
            assert instance.id == detached["InstanceId"]
            assert {"us-east-1b"} == {row["zone"] for row in disks.instances() if row["id"] == instance.id}

    run(scenario())


def test_a_disk_that_another_machine_still_has_is_waited_for(disks: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for ever; and a launch that is asked for twice does not wait for itself."""

    async def scenario() -> None:
        async with client(disks.provider(), volumes=[sky.Disk("data")]) as opened:
            [first] = await opened.launch(token="again")
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            monkeypatch.setattr(waiting.until_free, "__defaults__", (0.0,))
            assert [first.id] == [one.id for one in await opened.launch(token="again")]
            error = await refusal(opened.launch())
            assert ProvisionError is type(error)
            assert f"is still attached to {first.id} after 0 s" in str(error)
            spec = Spec(provider=disks.provider(), volumes=[sky.Disk("data")])
            error = await refusal(spec.provider.skyward_preflight(spec))
            assert f"is attached to {first.id}, and to one machine at a time." in str(error)

    run(scenario())


def test_an_attachment_that_is_refused_is_why_the_machine_is_of_no_use(disks: Cloud) -> None:
    """The account may not attach; what AWS says so is shown."""
    message = "You are not authorized to perform this operation."
    disks.fault("AttachVolume", code="UnauthorizedOperation", status=403, message=message)

    async def scenario() -> None:
        async with client(disks.provider(), volumes=[sky.Disk("data")]) as opened:
            await opened.launch()
            [instance] = await opened.until(lambda found: found[0].state is InstanceState.ENDING)
            assert instance.reason is not None
            assert "its disk could not be attached" in instance.reason
            assert "UnauthorizedOperation" in instance.reason

    run(scenario())


def test_offers_are_those_of_the_disks_zone(disks: Cloud) -> None:
    """In its region alone; and nothing is asked about volumes where none is wanted."""
    offers = run(disks.provider().skyward_offers(Spec(machine="m7i.large")))
    assert {None} == {offer.zone for offer in offers}
    assert [] == named(disks, "DescribeVolumes")
    provider = disks.provider(region=["us-east-1", "eu-west-1"])
    offers = run(provider.skyward_offers(Spec(machine="m7i.large", volumes=[sky.Disk("far")])))
    assert {("eu-west-1", "eu-west-1a")} == {(offer.region, offer.zone) for offer in offers}


@pytest.mark.parametrize(
    ("settings", "wishes", "words"),
    [
        ({}, {"volumes": [sky.Disk("dta")]}, "AWS in us-east-1 has no disk 'dta'. Did you mean 'data'?"),
        ({}, {"volumes": [sky.Disk("far")]}, "AWS in us-east-1 has no disk 'far'."),
        ({"zone": "us-east-1a"}, {}, "is in us-east-1b, and machines are asked for in us-east-1a."),
        ({}, {"nodes": 2}, "one machine at a time, and the pool may have 2 nodes. Write nodes=1"),
        ({}, {"volumes": [sky.Disk("data"), sky.Disk("elsewhere")]}, "is in us-east-1b and 'elsewhere'"),
        ({}, {"volumes": [sky.Disk("many")], "nodes": 17}, "is for 16 machines at a time, and the pool may have 17"),
    ],
)
def test_a_disk_that_cannot_be_had_is_refused_before_renting(
    disks: Cloud, settings: dict[str, str], wishes: dict[str, Any], words: str
) -> None:
    """With what there is instead."""
    disks.volume("many", multi=True)
    spec = Spec(provider=disks.provider(**settings), **{"volumes": [sky.Disk("data")], **wishes})
    error = run(refusal(spec.provider.skyward_preflight(spec)))
    assert ConfigError is type(error)
    assert words in str(error)
    assert [] == named(disks, "RunInstances")


def test_only_volumes_for_several_machines_are_for_several_nodes(disks: Cloud) -> None:
    """Those of io1 and io2 that Multi-Attach was turned on for."""
    volume = disks.volume("many", multi=True)
    spec = Spec(provider=disks.provider(), nodes=16, volumes=[sky.Disk(volume)])
    run(spec.provider.skyward_preflight(spec))


def test_the_disk_of_a_pools_machine_is_refused(disks: Cloud) -> None:
    """It is deleted with that."""

    async def scenario() -> None:
        async with client(disks.provider()) as opened:
            await opened.launch()
            [own] = [row for row in disks.ask("roots") if row["pool"] == opened.cluster.pool_id]
            spec = Spec(provider=disks.provider(), volumes=[sky.Disk(own["id"])])
            error = await refusal(spec.provider.skyward_preflight(spec))
            assert "is that of a pool's machine, which is deleted with it." in str(error)

    run(scenario())
