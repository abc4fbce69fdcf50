"""Machines of EC2 boot from an image of an earlier node: nothing is installed again, nothing of its pool is left."""

from __future__ import annotations

import contextlib
import logging
import secrets
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.clouds.aws.client import client, run
from tests.clouds.aws.cloud import Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(150)]


def asking() -> Any:
    """Make a function that asks the package of the image, and takes nothing of this module along."""

    def told() -> str:
        import skyward_of_a_wheel

        answer: str = skyward_of_a_wheel.ANSWER
        return answer

    return sky.function(told)


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Build a package."""
    path = tmp_path / "skyward_of_a_wheel-1.0-py3-none-any.whl"
    facts = "skyward_of_a_wheel-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("skyward_of_a_wheel.py", "ANSWER = 'installed'\n")
        file.writestr(f"{facts}/METADATA", "Metadata-Version: 2.1\nName: skyward-of-a-wheel\nVersion: 1.0\n")
        file.writestr(f"{facts}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{facts}/RECORD", "")
    return path


@contextlib.contextmanager
def pool(aws: Cloud, image: sky.Image, **options: Any) -> Iterator[tuple[Any, list[str]]]:
    """Open a pool, and give it with the phases of its bootstraps."""
    phases: list[str] = []
    given = {
        "machine": "m7i.large",
        "allocation": "on-demand",
        "warm_image": True,
        "console": False,
        "logging": False,
        "bootstrap_timeout": 60,
        **options,
    }
    opening = sky.Compute(provider=aws.provider(), image=image, **given)
    opening.on(sky.BootstrapPhase, lambda event: phases.append(event.phase) if event.event == "started" else None)
    with opening as opened:
        yield opened, phases


def made(aws: Cloud, image: sky.Image) -> str:
    """Have a pool make a machine image, and return its id."""
    with pool(aws, image) as (opened, _):
        assert 1 == opened.instance_count
    [name] = until(aws.images)
    return str(name)


def test_the_second_pool_installs_nothing(aws: Cloud, wheel: Path) -> None:
    """The package is there without its file, nothing is made or sent again, and no second image is made."""
    image = sky.Image(pip=[f"skyward-of-a-wheel @ {wheel.as_uri()}"])
    with pool(aws, image, nodes=2) as (opened, phases):
        assert "installed" == (asking()() >> opened)
        assert {"venv", "deps"} <= set(phases)
    [name] = until(aws.images)
    [call] = [call["params"] for call in aws.calls() if call["name"] == "ec2:CreateImage"]
    assert "true" == call["NoReboot"]
    wheel.unlink()
    with pool(aws, image, nodes=2) as (opened, phases):
        assert ["installed", "installed"] == asking()() @ opened
        assert {name} == {row["image"] for row in aws.alive()}
        assert not {"uv", "venv", "deps", "apt"} & set(phases)
    assert [name] == aws.images()


def test_another_machine_is_nobody_but_itself(aws: Cloud) -> None:
    """It lets in its own pool only, has its own host key, and has nothing of the node that the image was made of."""
    hidden = secrets.token_hex(16)
    image = sky.Image(env={"HIDDEN": hidden})
    name = made(aws, image)
    kept = Path(aws.folder, "images", name)
    files = [path for path in (kept / "home").rglob("*") if path.is_file() and not path.is_symlink()]
    assert [] == [path for path in files if hidden.encode() in path.read_bytes()]
    [old_node] = (kept / "home" / ".cache" / "skyward" / "nodes").iterdir()
    [old_key] = (kept / "home" / ".ssh" / "authorized_keys").read_text().splitlines()
    with pool(aws, image):
        [row] = aws.alive()
        assert name == row["image"]
        base = Path(row["base"])
        [own_key] = (base / "home" / ".ssh" / "authorized_keys").read_text().splitlines()
        [own_node] = (base / "home" / ".cache" / "skyward" / "nodes").iterdir()
        assert old_key != own_key
        assert old_node.name != own_node.name
        assert (kept / "host_key").read_text() != (base / "host_key").read_text()
        assert [row["id"]] == [path.name for path in (base / "cloud" / "instances").iterdir()]


def let_in(aws: Cloud, key: str) -> None:
    """Have a login be let in at the only machine there is."""
    [row] = aws.alive()
    keys = Path(row["base"], "home", ".ssh", "authorized_keys")
    keys.write_text(key + keys.read_text())


@pytest.mark.everything
def test_what_a_user_lets_in_stays(aws: Cloud) -> None:
    """Only lines that pools wrote are removed."""
    image = sky.Image()
    own = "ssh-ed25519 AAAA somebody@skyward-gate\n"

    async def scenario() -> None:
        async with client(aws.provider()) as opened:
            [machine] = await opened.launch()
            await opened.until(lambda found: found[0].address is not None)
            let_in(aws, own)
            infra, cluster = opened.infra, opened.cluster
            await opened.provider.skyward_make_machine_image(cluster, infra, machine, image.content_hash())

    run(scenario())
    with pool(aws, image):
        [row] = aws.alive()
        assert [row["image"]] == aws.images()
        lines = Path(row["base"], "home", ".ssh", "authorized_keys").read_text().splitlines(keepends=True)
        assert (own, 2) == (lines[0], len(lines))


def test_the_lease_of_the_first_pool_keeps_nobody_alive(aws: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that boots from the image and that no client comes to ends itself as any other."""
    name = made(aws, sky.Image())
    kept = Path(aws.folder, "images", name, "home", ".cache", "skyward", "nodes")
    assert 1 == len(list(kept.glob("*/lease")))
    monkeypatch.setattr("skyward.plan.bootstrap.first_boot.LEAST_DEADLINE", 1.0)

    async def scenario() -> None:
        async with client(aws.provider(ami=name), ttl=1) as opened:
            [instance] = await opened.launch()
            until(lambda: instance.id not in {row["id"] for row in aws.alive()})

    run(scenario())


def running(base: str, script: str) -> list[str]:
    """List the scripts of a name that run on a machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_text(errors="replace").split("\0")
            found += [word for word in words if word.startswith(base) and word.endswith(script)]
    return found


def test_the_watchdog_of_the_first_pool_does_not_act_in_the_second(aws: Cloud) -> None:
    """Of the two that its disk has seen, only its own runs there, by its own lease."""
    name = made(aws, sky.Image())
    nodes = Path("home", ".cache", "skyward", "nodes")
    [old] = Path(aws.folder, "images", name, nodes).glob("*/watchdog.sh")
    with pool(aws, sky.Image(), ttl=300):
        [row] = aws.alive()
        [own] = Path(row["base"], nodes).glob("*/watchdog.sh")
        assert [str(own)] == running(row["base"], "watchdog.sh")
        assert "TTL=300 " in own.read_text()
        assert "TTL=300 " not in old.read_text()


def test_an_image_that_is_refused_is_a_warning(aws: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    """The pool works, and says why the next one will be no quicker; other refusals are rows of the page of faults."""
    aws.fault("CreateImage", code="InternalError", status=400)
    with caplog.at_level(logging.WARNING, "skyward"), pool(aws, sky.Image()) as (opened, _):
        assert 5 == (sky.function(lambda: 5)() >> opened)
        until(lambda: "No machine image could be made of node 0" in caplog.text)
    assert "InternalError" in caplog.text
    assert [] == aws.images()


@pytest.mark.everything
def test_an_image_that_vanishes_between_list_and_launch_is_done_without(
    aws: Cloud, caplog: pytest.LogCaptureFixture
) -> None:
    """The machine boots from what it would boot from without."""
    name = made(aws, sky.Image())
    message = f"The image id '[{name}]' does not exist"
    aws.fault("RunInstances", code="InvalidAMIID.NotFound", message=message, times=1)
    with caplog.at_level(logging.WARNING, "skyward"), pool(aws, sky.Image(), max_provision_attempts=1) as (opened, _):
        assert 5 == (sky.function(lambda: 5)() >> opened)
        assert [name] != [row["image"] for row in aws.alive()]
    assert f"The machine image {name} could not be used" in caplog.text


@pytest.mark.everything
@pytest.mark.parametrize("effect", ["dies", "refuse"])
def test_an_image_that_does_not_boot_is_done_without(aws: Cloud, effect: str, caplog: pytest.LogCaptureFixture) -> None:
    """And costs none of the attempts that a pool has."""
    name = made(aws, sky.Image())
    aws.fault("RunInstances", effect, times=1)
    options = {"max_provision_attempts": 1, "bootstrap_timeout": 8, "reconcile_tick_interval": 1.0}
    with caplog.at_level(logging.WARNING, "skyward"), pool(aws, sky.Image(), **options) as (opened, _):
        assert 5 == (sky.function(lambda: 5)() >> opened)
        assert [name] != [row["image"] for row in aws.alive()]
    assert f"The machine image {name} could not be used" in caplog.text


@pytest.mark.everything
def test_an_image_that_is_being_made_is_let_be_and_one_that_failed_is_replaced(aws: Cloud) -> None:
    """AWS takes minutes, and may fail when the machine is gone before it is done."""
    name = made(aws, sky.Image())
    aws.turn_image(name, "pending")
    with pool(aws, sky.Image()):
        assert [name] != [row["image"] for row in aws.alive()]
    assert [name] == aws.images()
    aws.turn_image(name, "failed")
    with pool(aws, sky.Image()):
        assert [name] != [row["image"] for row in aws.alive()]
    [other] = until(aws.images)
    assert name != other


@pytest.mark.everything
def test_images_are_listed_and_deleted_without_a_pool(aws: Cloud, capsys: pytest.CaptureFixture[str]) -> None:
    """From the cloud alone, whichever pool made them."""
    from skyward.cli.main import main

    name = made(aws, sky.Image())
    [listed] = sky.machine_images([aws.provider()])
    assert (name, sky.Image().content_hash(), "us-east-1") == (listed.id, listed.content_hash, listed.region)
    assert 0 == main(["images"])
    assert name in capsys.readouterr().out
    assert 0 == main(["images", "delete", sky.Image().content_hash(), "--yes"])
    assert f"Deleted {name}." in capsys.readouterr().out
    assert [] == aws.images()
