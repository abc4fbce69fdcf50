"""What is asked of a container is checked before anything is made."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError, ProvisionError
from skyward.hookspecs import Cluster, InstanceState, LaunchRequest, Offer, SSHAddress, Tags
from skyward.model.spec.spec import Spec
from skyward_container.engine import Done, is_gone
from skyward_container.machine import HOST_KEY, instance_of
from skyward_container.provider import Network


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"image": ""}, "image must be the name"),
        ({"image": "--privileged"}, "image must be the name"),
        ({"image": "a", "binary": "runc"}, '"docker" or "podman"'),
        ({"image": "a", "cpus": 0}, "cpus must be"),
        ({"image": "a", "cpus": float("nan")}, "cpus must be"),
        ({"image": "a", "memory": "lots"}, "memory"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    """The parameter is named."""
    with pytest.raises(ConfigError, match=message):
        sky.Container(**given)


def test_values_are_equal_by_what_they_say() -> None:
    """As every provider."""
    assert sky.Container(image="a", memory="2GB") == sky.Container(image="a", memory=2.0)
    assert sky.Container(image="ubuntu:24.04") == sky.Container(image=sky.containers.ubuntu("24.04"))


def test_missing_command_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is done."""
    monkeypatch.setenv("PATH", "/nonexistent")
    compute = sky.Compute(provider=sky.Container(image="a"), console="silent", logging=False)
    with pytest.raises(ConfigError, match="Neither docker nor podman"), compute:
        pass


@pytest.mark.parametrize(
    "words",
    [
        "Error: No such container: skyward-a1-0-abcdef",
        "Error response from daemon: No such container: skyward-a1-0-abcdef",
        "Error: No such network: skyward-a1",
        "Error response from daemon: network skyward-a1 not found",
        "Error: unable to find network with name or ID skyward-a1: network not found",
        'Error: no container with ID or name "skyward-a1-0-abcdef" found: no such container',
    ],
)
def test_what_is_gone_need_not_be_removed(words: str) -> None:
    """In the words of Docker, old and new, and of Podman; what worked says nothing of it."""
    assert is_gone(Done(1, "", words))
    assert not is_gone(Done(0, "", words))


def test_what_cannot_be_removed_is_not_gone() -> None:
    """A network that still has containers, for one."""
    assert not is_gone(Done(1, "", "Error response from daemon: network skyward-a1 has active endpoints"))


NOW = 1_772_359_210.0
"""Ten seconds after 2026-03-01T10:00:00Z."""

DOCKERS = {
    "Name": "/skyward-a1-0-abcdef",
    "Created": "2026-03-01T10:00:00.123456789Z",
    "State": {"Status": "running", "Running": True},
    "Config": {
        "Image": "debian:12",
        "Labels": {"skyward.pool": "a1", "skyward.node": "3", "skyward.token": "t", HOST_KEY: "ssh-ed25519 AAAA"},
    },
    "NetworkSettings": {
        "Ports": {"22/tcp": [{"HostIp": "127.0.0.1", "HostPort": "40022"}]},
        "Networks": {"skyward-a1": {"IPAddress": "10.89.0.2"}},
    },
}


def test_docker_s_and_podman_s_descriptions_are_read() -> None:
    """Names differ by a slash, times by their zone."""
    podmans = {**DOCKERS, "Name": "skyward-a1-0-abcdef", "Created": "2026-03-01T11:00:00.123456789+01:00"}
    made = instance_of(DOCKERS, "the key", NOW)
    assert made is not None
    assert made == instance_of(podmans, "the key", NOW)
    assert ("skyward-a1-0-abcdef", 3, "10.89.0.2") == (made.id, made.node, made.private_ip)
    assert Tags(pool_id="a1", node=3, token="t") == made.tags
    assert isinstance(made.address, SSHAddress)
    assert (40022, "ssh-ed25519 AAAA") == (made.address.port, made.address.host_key)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"Status": "created", "Running": False}, InstanceState.PENDING),
        ({"Status": "initialized", "Running": False}, InstanceState.PENDING),
        ({"Status": "exited", "FinishedAt": "2026-03-01T10:00:04.5Z"}, InstanceState.ENDED),
        ({"Status": "exited", "FinishedAt": "2026-03-01T11:00:06.123456789+01:00"}, InstanceState.PENDING),
        ({"Status": "dead", "Running": False}, InstanceState.ENDED),
        ({"Status": "paused", "Running": True}, InstanceState.RUNNING),
    ],
)
def test_states_are_read(state: dict[str, Any], expected: InstanceState) -> None:
    """One that was not started yet, or stopped a moment ago and may be started again, is no one that ended."""
    made = instance_of({**DOCKERS, "State": state, "NetworkSettings": {"Ports": None}}, None, NOW)
    assert made is not None
    assert (expected, None) == (made.state, made.address)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"Status": "exited", "ExitCode": 137, "OOMKilled": True}, "memory ran out (OOMKilled)"),
        ({"Status": "exited", "ExitCode": 96, "OOMKilled": False, "Error": ""}, "exited with code 96"),
        ({"Status": "dead", "ExitCode": 255, "Error": "mount failed."}, "dead with code 255. mount failed"),
        ({"Status": "running", "Running": True, "ExitCode": 0}, None),
    ],
)
def test_the_reason_of_an_end_is_read(state: dict[str, Any], expected: str | None) -> None:
    """The engine's own words, which Docker and Podman share; one that runs needs no reason."""
    made = instance_of({**DOCKERS, "State": {"FinishedAt": "2026-03-01T10:00:00Z", **state}}, None, NOW)
    assert made is not None
    assert expected == made.reason


def test_what_is_not_ours_is_passed_over() -> None:
    """It has no label of ours, or none at all."""
    for written in ({"com.example": "x"}, None):
        assert instance_of({**DOCKERS, "Config": {"Image": "a", "Labels": written}}, None, NOW) is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"Created": "yesterday"}, "Created"),
        ({"State": None}, "State"),
        ({"NetworkSettings": {"Ports": {"22/tcp": [{"HostPort": "many"}]}}}, "NetworkSettings.Ports"),
        ({"NetworkSettings": {"Networks": {"n": None}}}, "NetworkSettings.Networks"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_a_fact_that_cannot_be_read_hides_no_container(
    changes: dict[str, Any], field: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It exists, of whatever is said of it; its state is none that is over."""
    name = f"skyward-a1-0-{field.lower()}"
    found = instance_of({**DOCKERS, **changes, "Name": f"/{name}"}, "key", NOW)
    assert found is not None
    assert (name, "a1") == (found.id, found.tags and found.tags.pool_id)
    assert found.state is not InstanceState.ENDED
    assert f"provider=container instance='{name}' field={field} " in caplog.text


ENGINE = """#!/bin/sh
case $1 in
  run) for word; do echo "$word"; done >{told}; printenv SKYWARD_LOGIN_KEY SKYWARD_HOST_KEY >{given}; exit 125 ;;
esac
"""


def test_no_key_is_in_a_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of this machine reads those; the engine takes keys from its own environment."""
    told, given = tmp_path / "told", tmp_path / "given"
    (tmp_path / "podman").write_text(ENGINE.format(told=told, given=given))
    (tmp_path / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    provider = sky.Container(image="debian:12", binary="podman", cpus=1)
    offer = Offer(provider="container", instance_type="debian:12")
    cluster = Cluster(pool_id="a1", pool_name="p", spec=Spec(), offer=offer, provider="container", nodes=1)
    request = LaunchRequest(cluster=cluster, nodes=[0], token="token0")
    with pytest.raises(ProvisionError, match="podman run failed with code 125"):
        asyncio.run(provider.skyward_launch(request=request, infra=Network(name="n", own=True)))
    words = told.read_text().splitlines()
    assert ["SKYWARD_LOGIN_KEY", "SKYWARD_HOST_KEY"] == [after for word, after in pairwise(words) if word == "--env"]
    assert "PRIVATE KEY" not in told.read_text()
    assert cluster.key.public == given.read_text().splitlines()[0]
    assert "BEGIN OPENSSH PRIVATE KEY" in given.read_text()


REMOVING = """#!/bin/sh
case "$*" in
  ps*) echo stuck; echo skyward-a1-0-abcdef ;;
  "inspect --type container skyward-a1-0-abcdef") cat {row} ;;
  inspect*) echo "Error: no such container" >&2; echo "[]"; exit 125 ;;
esac
"""


def test_one_that_cannot_be_described_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is stuck in its removal fails the description of all that are asked for with it."""
    (tmp_path / "row").write_text(json.dumps([DOCKERS]))
    (tmp_path / "podman").write_text(REMOVING.format(row=tmp_path / "row"))
    (tmp_path / "podman").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = asyncio.run(sky.Container(image="debian:12", binary="podman").skyward_owned())
    assert ["skyward-a1-0-abcdef"] == [each.id for each in found]
