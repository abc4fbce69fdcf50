"""Machines reached through Session Manager: a stand-in for its command line takes us there."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import skyward as sky
from skyward.errors import ConfigError
from tests.clouds.aws.client import client, refusal, run
from tests.clouds.aws.cloud import Cloud

# Joins its input and output to the port of the machine that it is asked for, as the real one does.
_STAND_IN = """#!{python}
import json, os, socket, sys, threading, urllib.request
words = sys.argv[1:]
assert words[:2] == ["ssm", "start-session"] and "AWS-StartSSHSession" in words
target, port = words[words.index("--target") + 1], words[words.index("--parameters") + 1].partition("=")[2]
rows = json.load(urllib.request.urlopen("{url}/test-cloud/instances"))
[address] = [row["private"] for row in rows if row["id"] == target]
sock = socket.create_connection((address, int(port)))
def up():
    while data := os.read(0, 65536):
        sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while data := sock.recv(65536):
    while data:
        data = data[os.write(1, data) :]
"""


pytestmark = pytest.mark.clouds


@pytest.fixture
def command(aws: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-ins on the path."""
    for name in ("aws", "session-manager-plugin"):
        path = tmp_path / name
        path.write_text(_STAND_IN.format(python=sys.executable, url=aws.url))
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@sky.function
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.mark.usefixtures("command")
def test_a_pool_works_through_the_tunnel(aws: Cloud) -> None:
    """Nothing is let in from outside, and the function runs all the same."""
    with sky.Compute(
        provider=aws.provider(use_ssm=True),
        machine="m7i.large",
        allocation="on-demand",
        console=False,
        bootstrap_timeout=20,
    ) as pool:
        assert 5 == (add(2, 3) >> pool)
        assert "skyward-closed" in aws.groups()
    rules = [call["params"] for call in aws.calls() if call["name"] == "ec2:AuthorizeSecurityGroupIngress"]
    assert {"-1"} == {rule["IpPermissions.1.IpProtocol"] for rule in rules}
    launches = [call["params"] for call in aws.calls() if call["name"] == "ec2:RunInstances"]
    assert not any("AssociatePublicIpAddress" in name for params in launches for name in params)


def test_without_the_command_it_is_refused(aws: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names what is not installed."""
    monkeypatch.setenv("PATH", str(tmp_path))

    async def scenario() -> None:
        async with client(aws.provider(use_ssm=True)):
            pass

    error = run(refusal(scenario()))
    assert isinstance(error, ConfigError)
    assert "session-manager-plugin" in str(error)
