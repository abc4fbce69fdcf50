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
    with sky.Compute(provider=volumes.provider(volume="data", mount=where), nodes=2, **options) as pool:
        rows = volumes.alive()
        assert [{"network": [{"volumeId": DATA["id"], "path": where}]}] * 2 == [row["body"]["mounts"] for row in rows]
        assert [["EU-RO-1"]] * 2 == [row["body"]["dataCenterIds"] for row in rows]
        gathered = note(where, 0) >> pool, note(where, 1) >> pool
        assert (["rank-0"], ["rank-0", "rank-1"]) == gathered
    with sky.Compute(provider=volumes.provider(volume=DATA["id"], mount=where), **options) as pool:
        assert ["rank-0", "rank-1", "rank-2"] == note(where, 2) >> pool
    assert [] == volumes.alive()
    assert 4 <= len(volumes.calls(f"GET {VOLUMES}"))


def test_offers_are_those_of_the_volumes_data_centre(volumes: Cloud, tmp_path: Path) -> None:
    """Of the Secure Cloud alone, also where both are looked at; and nothing is mounted where no spec asks."""

    async def scenario() -> None:
        where = str(tmp_path / "data")
        provider = volumes.provider(volume="data", mount=where, cloud="all")
        offers = [each for each in await provider.skyward_offers(Spec()) if each.available]
        assert {("SECURE", ("EU-RO-1",))} == {(each.zone, tuple(each.data["places"])) for each in offers}
        async with client(provider) as opened:
            await opened.launch()
            assert [{"volumeId": DATA["id"], "path": where}] == volumes.alive()[0]["body"]["mounts"]["network"]
            await opened.end()
        async with client(volumes.provider()) as opened:
            await opened.launch()
            assert "mounts" not in volumes.alive()[0]["body"]

    run(scenario())


@pytest.mark.parametrize(
    ("settings", "region", "words"),
    [
        ({"volume": "dat"}, None, "RunPod has no volume 'dat'. Did you mean 'data'?"),
        ({"volume": "agv6w2qcg8"}, None, "Did you mean 'agv6w2qcg7'?"),
        ({"volume": "twin"}, None, "several volumes 'twin': b2 in US-KS-2, b3 in EU-RO-1."),
        ({"volume": "data", "data_center": "US-KS-2"}, None, "is in EU-RO-1, and machines are asked for in US-KS-2."),
        ({"volume": "data"}, "OC-AU-1", "is in EU-RO-1, and machines are asked for in OC-AU-1."),
    ],
)
def test_a_volume_that_cannot_be_had_is_refused_before_renting(
    volumes: Cloud, settings: dict[str, str], region: str | None, words: str
) -> None:
    """With what there is instead."""
    provider = volumes.provider(**settings)
    error = run(refusal(provider.skyward_preflight(Spec(provider=provider, region=region))))
    assert ConfigError is type(error)
    assert words in str(error)
    assert [] == volumes.calls("POST")


def test_the_community_cloud_has_no_volumes() -> None:
    """It is said where it is written."""
    with pytest.raises(ConfigError, match="Only the Secure Cloud has volumes"):
        sky.RunPod(cloud="community", volume="data")
    with pytest.raises(ConfigError, match="mount must be an absolute path"):
        sky.RunPod(volume="data", mount="data")
