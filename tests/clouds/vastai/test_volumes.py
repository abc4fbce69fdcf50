"""Local volumes of the user: only listings of their machine are looked at, and no end deletes one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError, NoAvailableProviderError
from skyward.model.spec.spec import Spec
from tests.clouds.vastai.client import client, refusal, run
from tests.clouds.vastai.cloud import Cloud

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

HERE, THERE = 3100007, 3100008
LIST = "GET /api/v0/volumes"


@pytest.fixture
def volumes(vastai: Cloud) -> Iterator[Cloud]:
    """Give a cloud with two volumes, of which a test may only ask which there are."""
    vastai.volumes(v7=HERE, v8=THERE)
    yield vastai
    assert {LIST} >= {call["name"] for call in vastai.calls() if "/volumes" in call["name"]}


@sky.function
def note(folder: str, name: str) -> list[str]:
    """Leave a file in the volume, and tell which are there."""
    Path(folder, name).touch()
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.usefixtures("with_hosts")
def test_the_container_has_the_volume_and_what_is_in_it_outlives_the_container(volumes: Cloud, tmp_path: Path) -> None:
    """The next pool finds what the last one wrote; Vast.ai is asked for its volumes once."""
    where = str(tmp_path / "data")
    options: dict[str, Any] = {"accelerator": "RTX 4090", "console": False, "bootstrap_timeout": 20}
    provider, disks = volumes.provider(), [sky.Disk("7", mount=where)]
    for turn, name in enumerate(("one", "two")):
        with sky.Compute(provider=provider, volumes=disks, **options) as pool:
            [row] = volumes.alive()
            assert {"create_new": False, "volume_id": 7, "mount_path": where} == row["volume"]
            assert HERE == row["ask"] // 10
            assert ["one", "two"][: turn + 1] == note(where, name) >> pool
    assert [] == volumes.alive()
    assert 1 == len(volumes.calls(LIST))


def test_offers_are_those_of_the_volumes_machine(volumes: Cloud) -> None:
    """Whatever Vast.ai thinks of it: who keeps a volume there has chosen it."""
    volumes.listing(31000081, verification="unverified", reliability=0.5)

    async def scenario() -> None:
        offers = await volumes.provider().skyward_offers(Spec(volumes=[sky.Disk("V.8")]))
        assert {THERE} == {offer.data["ask"] // 10 for offer in offers}
        assert 31000081 in {offer.data["ask"] for offer in offers}

    run(scenario())


def test_who_asks_for_it_has_it_and_nobody_else(volumes: Cloud, tmp_path: Path) -> None:
    """Without a disk nothing is said of volumes."""

    async def scenario() -> None:
        disks = [sky.Disk("8", mount=str(tmp_path / "d"))]
        async with client(volumes.provider(), accelerator="RTX 3090", volumes=disks) as opened:
            await opened.launch()
            assert [8] == [row["volume"]["volume_id"] for row in volumes.alive()]
        async with client(volumes.provider()) as opened:
            await opened.launch()
            assert [None] == [row["volume"] for row in volumes.alive()]

    run(scenario())


@pytest.mark.usefixtures("with_hosts")
def test_a_machine_that_has_none_of_what_is_asked_for_is_no_other(volumes: Cloud) -> None:
    """There is no A100 on the volume's machine, and one elsewhere would not have it."""
    with (
        pytest.raises(NoAvailableProviderError),
        sky.Compute(provider=volumes.provider(), volumes=[sky.Disk("7")], accelerator="H100", console=False),
    ):
        pytest.fail("rented")
    assert [] == volumes.calls("PUT /api/v0/asks")


def test_a_volume_that_there_is_not_is_refused_before_renting(volumes: Cloud) -> None:
    """With those that there are."""
    error = run(refusal(volumes.provider().skyward_preflight(Spec(volumes=[sky.Disk("9")]))))
    assert ConfigError is type(error)
    assert "Vast.ai has no disk '9'. There are: 'V.7' (7), 'V.8' (8)." in str(error)


def test_a_volume_is_found_by_its_label(vastai: Cloud) -> None:
    """That is where Vast.ai keeps the name; one without is called by its number."""
    vastai.volumes("training-data", v7=HERE)

    async def scenario() -> None:
        for name in ("training-data", "7"):
            offers = await vastai.provider().skyward_offers(Spec(volumes=[sky.Disk(name)]))
            assert {HERE} == {offer.data["ask"] // 10 for offer in offers}
        error = await refusal(vastai.provider().skyward_preflight(Spec(volumes=[sky.Disk("training")])))
        assert "Did you mean 'training-data'?" in str(error)

    run(scenario())
