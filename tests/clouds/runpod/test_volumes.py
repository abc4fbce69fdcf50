"""Network volumes of the user: found before anything is rented, in every pod at its path, and never taken away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from skyward.errors import ConfigError
from skyward.model.spec.spec import Spec
from tests.clouds.runpod.client import client, refusal, run
from tests.clouds.runpod.cloud import Cloud

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

EU = {"dataCenter": "EU-RO-1"}
DATA = {"id": "agv6w2qcg7", "name": "data", **EU}
VOLUMES = "/v2/network-volumes"


@pytest.fixture
def volumes(runpod: Cloud) -> Iterator[Cloud]:
    """Give a cloud with a volume, which has to be there in the end, and untouched."""
    runpod.volumes(DATA, {"id": "b2", "name": "twin", "dataCenter": "US-KS-2"}, {"id": "b3", "name": "twin", **EU})
    yield runpod
    assert [] == [call["name"] for call in runpod.calls() if VOLUMES in call["name"] and "GET" not in call["name"]]


@sky.function
def note(folder: str, rank: int) -> list[str]:
    """Leave a file in the volume, and tell which are there."""
    Path(folder, f"rank-{rank}").touch()
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.usefixtures("with_hosts")
def test_all_pods_have_the_volume_and_what_is_in_it_outlives_them(volumes: Cloud, tmp_path: Path) -> None:
    """Several nodes share it; the next pool finds what the last one wrote."""
    where = str(tmp_path / "data")
    options = {"machine": "cpu5c:2", "console": False, "bootstrap_timeout": 20}
    disk = sky.Disk("data", mount=where)
    with sky.Compute(provider=volumes.provider(), volumes=[disk], nodes=2, **options) as pool:
        rows = volumes.alive()
        assert [{"network": [{"volumeId": DATA["id"], "path": where}]}] * 2 == [row["body"]["mounts"] for row in rows]
        assert [["EU-RO-1"]] * 2 == [row["body"]["dataCenterIds"] for row in rows]
        gathered = note(where, 0) >> pool, note(where, 1) >> pool
        assert (["rank-0"], ["rank-0", "rank-1"]) == gathered
    disk = sky.Disk(DATA["id"], mount=where)
    with sky.Compute(provider=volumes.provider(), volumes=[disk], **options) as pool:
        assert ["rank-0", "rank-1", "rank-2"] == note(where, 2) >> pool
    assert [] == volumes.alive()
    assert 4 <= len(volumes.calls(f"GET {VOLUMES}"))


def test_offers_are_those_of_the_volumes_data_centre(volumes: Cloud, tmp_path: Path) -> None:
    """Of the Secure Cloud alone, also where both are looked at; and nothing is mounted where no spec asks."""

    async def scenario() -> None:
        where = str(tmp_path / "data")
        provider, disk = volumes.provider(cloud="all"), sky.Disk("data", mount=where)
        offers = [each for each in await provider.skyward_offers(Spec(volumes=[disk])) if each.available]
        assert {("SECURE", ("EU-RO-1",))} == {(each.zone, tuple(each.data["places"])) for each in offers}
        async with client(provider, volumes=[disk]) as opened:
            await opened.launch()
            assert [{"volumeId": DATA["id"], "path": where}] == volumes.alive()[0]["body"]["mounts"]["network"]
            await opened.end()
        async with client(volumes.provider()) as opened:
            await opened.launch()
            assert "mounts" not in volumes.alive()[0]["body"]

    run(scenario())


@pytest.mark.parametrize(
    ("disk", "settings", "region", "words"),
    [
        ("dat", {}, None, "RunPod has no disk 'dat'. Did you mean 'data'?"),
        ("agv6w2qcg8", {}, None, "Did you mean 'agv6w2qcg7'?"),
        ("twin", {}, None, "several disks 'twin': b2 in US-KS-2, b3 in EU-RO-1."),
        ("data", {"data_center": "US-KS-2"}, None, "is in EU-RO-1, and machines are asked for in US-KS-2."),
        ("data", {}, "OC-AU-1", "is in EU-RO-1, and machines are asked for in OC-AU-1."),
    ],
)
def test_a_volume_that_cannot_be_had_is_refused_before_renting(
    volumes: Cloud, disk: str, settings: dict[str, str], region: str | None, words: str
) -> None:
    """With what there is instead."""
    spec = Spec(provider=volumes.provider(**settings), region=region, volumes=[sky.Disk(disk)])
    error = run(refusal(spec.provider.skyward_preflight(spec)))
    assert ConfigError is type(error)
    assert words in str(error)
    assert [] == volumes.calls("POST")


def test_the_community_cloud_has_no_disks(volumes: Cloud) -> None:
    """Nothing is rented there."""
    spec = Spec(provider=volumes.provider(cloud="community"), volumes=[sky.Disk("data")])
    error = run(refusal(spec.provider.skyward_preflight(spec)))
    assert ConfigError is type(error)
    assert "Only the Secure Cloud has network volumes." in str(error)


def test_where_a_disk_was_written_before_is_no_setting_any_more() -> None:
    """The error says where it is written now."""
    for settings in ({"volume": "data"}, {"mount": "/data"}):
        with pytest.raises(ConfigError, match=r'no setting .*volumes=\[sky\.Disk\("NAME", mount="/data"\)\]'):
            sky.RunPod(**settings)


def test_a_network_volume_may_be_a_bucket(volumes: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked up like a disk, and need not be where the pods are."""
    monkeypatch.setenv("RUNPOD_S3_ACCESS_KEY", "user_x")
    monkeypatch.setenv("RUNPOD_S3_SECRET_KEY", "rps_x")
    provider, bucket = volumes.provider(), sky.Volume("b2", "/data")
    found = run(provider.skyward_volume_storage(Spec(volumes=[bucket])))
    assert "https://s3api-us-ks-2.runpod.io" == found.endpoint
    assert run(provider.skyward_volume_storage(Spec(volumes=[sky.Disk("data")]))) is None
    error = run(refusal(provider.skyward_volume_storage(Spec(volumes=[sky.Volume("absent", "/data")]))))
    assert "RunPod has no disk 'absent'" in str(error)
