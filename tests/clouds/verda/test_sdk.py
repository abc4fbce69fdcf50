"""Verda's own SDK finds in the test cloud what it finds at Verda: it lists, creates and deletes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from verda import VerdaClient
from verda.exceptions import APIException

from tests.clouds.verda.cloud import CLIENT_ID, CLIENT_SECRET, MACHINE, Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.usefixtures("without_hosts")]

PUBLIC = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8sFzJfPMb0cCFB3PW6mLcxPpWbN0J3Y1ZVvVfQh0Xh test"


@pytest.fixture
def sdk(verda: Cloud) -> Iterator[VerdaClient]:
    """Log in."""
    return VerdaClient(CLIENT_ID, CLIENT_SECRET, base_url=verda.base_url)


def rented(sdk: VerdaClient, **changes: Any) -> Any:
    """Rent a machine."""
    wanted = {
        "instance_type": MACHINE,
        "image": "ubuntu-24.04",
        "hostname": "sdk-test",
        "description": "test",
        "location": "FIN-01",
        **changes,
    }
    return sdk.instances.create(**wanted, wait_for_status="running", initial_interval=0.05)


def test_what_is_sold_is_listed(sdk: VerdaClient) -> None:
    """Balance, types with their prices, places, images, and what is left of which market."""
    assert 100.0 == sdk.balance.get().amount
    types = {kind.instance_type: kind for kind in sdk.instance_types.get("usd")}
    assert (1.2894, 0.4513) == (types["1A100.22V"].price_per_hour, types["1A100.22V"].spot_price_per_hour)
    assert "FIN-01" in [place["code"] for place in sdk.locations.get()]
    assert "ubuntu-22.04" in [image.image_type for image in sdk.images.get(MACHINE)]
    spot = {row["location_code"]: row["availabilities"] for row in sdk.instances.get_availabilities(is_spot=True)}
    assert "1B200.30V" in spot["ICE-01"]
    assert sdk.instances.is_available("1B200.30V", is_spot=True, location_code="ICE-01")
    assert not sdk.instances.is_available("1B200.30V", location_code="ICE-01")
    assert ["NVMe"] == [kind.type for kind in sdk.volume_types.get()]


def test_keys_and_scripts_are_made_listed_and_deleted(sdk: VerdaClient) -> None:
    """By both of the ways that there are to delete."""
    keys = [sdk.ssh_keys.create(f"key-{number}", PUBLIC) for number in range(2)]
    assert ["key-0", "key-1"] == [key.name for key in sdk.ssh_keys.get()]
    assert PUBLIC == sdk.ssh_keys.get_by_id(keys[0].id).public_key
    sdk.ssh_keys.delete_by_id(keys[0].id)
    sdk.ssh_keys.delete([keys[1].id])
    assert [] == sdk.ssh_keys.get()
    scripts = [sdk.startup_scripts.create(f"script-{number}", "true") for number in range(2)]
    assert "true" == sdk.startup_scripts.get_by_id(scripts[0].id).script
    sdk.startup_scripts.delete_by_id(scripts[0].id)
    sdk.startup_scripts.delete([scripts[1].id])
    assert [] == sdk.startup_scripts.get()


@pytest.mark.usefixtures("with_hosts")
def test_an_instance_is_rented_runs_its_script_and_is_deleted(verda: Cloud, sdk: VerdaClient) -> None:
    """It has an address once it runs; the volume that it booted from goes with it where nothing else is said."""
    script = sdk.startup_scripts.create("mark", 'touch "$HOME/was-here"')
    made = rented(sdk, startup_script_id=script.id)
    assert made.ip
    assert [made.id] == [each.id for each in sdk.instances.get()]
    until((verda_home(verda, made.id) / "was-here").exists)
    [volume] = sdk.volumes.get()
    assert made.os_volume_id == volume.id
    sdk.instances.action(made.id, "delete", volume_ids=[volume.id], delete_permanently=True)
    until(lambda: not sdk.instances.get())
    assert "discontinued" == sdk.instances.get_by_id(made.id).status
    assert [] == sdk.volumes.get() + sdk.volumes.get_in_trash()
    sdk.startup_scripts.delete_by_id(script.id)


def test_a_volume_that_was_there_before_is_attached_and_stays(verda: Cloud, sdk: VerdaClient) -> None:
    """A disk to one instance at a time, a share to several, and it says how it is mounted."""
    disk = sdk.volumes.create("NVMe", "disk", 10, location="FIN-01")
    share = sdk.volumes.create("NVMe_Shared", "share", 10, location="FIN-01")
    assert (None, True) == (disk.mount_command, share.mount_command.startswith("sudo mount -t nfs"))
    first = rented(sdk, existing_volumes=[disk.id, share.id])
    with pytest.raises(APIException, match="not detached"):
        rented(sdk, existing_volumes=[disk.id])
    second = rented(sdk, existing_volumes=[share.id])
    assert first.id == sdk.volumes.get_by_id(disk.id).instance_id
    assert [first.id, second.id] == [each["id"] for each in sdk.volumes.get_by_id(share.id).instances]
    for made in (first, second):
        sdk.instances.action(made.id, "delete", volume_ids=[made.os_volume_id], delete_permanently=True)
    assert {disk.id, share.id} == {each.id for each in sdk.volumes.get(status="detached")}
    for volume in (disk, share):
        sdk.volumes.delete_by_id(volume.id, is_permanent=True)
    until(lambda: not sdk.instances.get())


def test_volumes_go_to_the_trash_unless_they_are_named(verda: Cloud, sdk: VerdaClient) -> None:
    """Nothing said: the trash. An empty list: it is detached, and billed on."""
    made = rented(sdk)
    sdk.instances.action(made.id, "delete")
    assert [made.os_volume_id] == [each.id for each in sdk.volumes.get_in_trash()]
    kept = rented(sdk)
    sdk.instances.action(kept.id, "delete", volume_ids=[])
    assert [kept.os_volume_id] == [each.id for each in sdk.volumes.get(status="detached")]
    until(lambda: not sdk.instances.get())
    # Billed as long as it is there.
    assert kept.id in [row["id"] for row in verda.alive()]
    for volume in (made.os_volume_id, kept.os_volume_id):
        sdk.volumes.delete_by_id(volume, is_permanent=True)
    assert [] == verda.alive()


def test_a_spot_instance_that_is_taken_leaves_its_volume(verda: Cloud, sdk: VerdaClient) -> None:
    """Unless its owner asked for the end of that in the call that rented it."""
    left = rented(sdk, is_spot=True)
    forever = {"name": "os", "size": 50, "on_spot_discontinue": "delete_permanently"}
    clean = rented(sdk, is_spot=True, os_volume=forever)
    for each in (left, clean):
        verda.interrupt(each.id)
    until(lambda: not sdk.instances.get())
    assert [left.os_volume_id] == [each.id for each in sdk.volumes.get()]
    sdk.volumes.delete_by_id(left.os_volume_id, is_permanent=True)


def test_refusals_are_as_the_sdk_reads_them(verda: Cloud, sdk: VerdaClient) -> None:
    """Code and words of each."""
    for code, words, changes in (
        ("service_unavailable", "Not enough resources to deploy a 1 GPU", {"instance_type": "1B200.30V"}),
        ("invalid_request", "Operating system is not valid", {"image": "ubuntu-18.04"}),
        (
            "invalid_request",
            "only allowed for spot",
            {"os_volume": {"name": "o", "size": 50, "on_spot_discontinue": "keep_detached"}},
        ),
        ("invalid_request", "Invalid instance type", {"instance_type": "9X.1"}),
    ):
        with pytest.raises(APIException, match=words) as raised:
            rented(sdk, **{"instance_type": MACHINE, **changes})
        assert code == raised.value.code
    with pytest.raises(APIException, match="Invalid instance id"):
        sdk.instances.action("nobody", "delete")
    verda.fault("POST /v1/instances", "slow", seconds=600, times=1)
    made = sdk.instances.create(MACHINE, "ubuntu-24.04", "late", "late", location="FIN-01", wait_for_status=None)
    with pytest.raises(APIException, match="Can't discontinue a provisioning instance"):
        sdk.instances.action(made.id, "delete")
    verda.terminate(made.id)
    until(lambda: not sdk.instances.get())
    with pytest.raises(APIException, match="Can't discontinue a discontinued instance"):
        sdk.instances.action(made.id, "delete")
    with pytest.raises(APIException, match="Invalid client id") as raised:
        VerdaClient(CLIENT_ID, "wrong", base_url=verda.base_url)
    assert "unauthorized_request" == raised.value.code


def test_a_token_runs_out_and_is_renewed(verda: Cloud) -> None:
    """With the refresh token; one that is not known any more is refused."""
    verda.ask("token_life", 0)
    sdk = VerdaClient(CLIENT_ID, CLIENT_SECRET, base_url=verda.base_url)
    verda.ask("token_life", 3600)
    assert 100.0 == sdk.balance.get().amount
    assert ["POST /v1/oauth2/token"] * 2 + ["GET /v1/balance"] == [call["name"] for call in verda.calls()]


def verda_home(verda: Cloud, name: str) -> Path:
    """Return the home of a machine."""
    return Path(verda.folder, name, "home")
