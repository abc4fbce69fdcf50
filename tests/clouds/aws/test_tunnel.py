"""Machines reached through Session Manager: sessions over its data channel, with stand-ins for what clients install."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import skyward as sky
from skyward.errors import ConfigError
from tests.clouds.aws.client import client, refusal, run
from tests.clouds.aws.cloud import ROOT, Cloud
from tests.clouds.aws.data_channel import ACK, INPUT, Message
from tests.waiting import until

pytestmark = pytest.mark.clouds


@pytest.fixture
def command(aws: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-ins on the path."""
    for name in ("aws", "session-manager-plugin"):
        path = tmp_path / name
        run_it = f"exec {sys.executable} -m tests.clouds.aws.session_command {name}"
        path.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} {run_it} "$@"\n')
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")


@sky.function
def told(size: int) -> bytes:
    """Return that many bytes, which no compression makes fewer: on a slow line a result is compressed."""
    return secrets.token_bytes(size)


@sky.function
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@pytest.mark.usefixtures("command")
def test_a_pool_works_through_the_tunnel(aws: Cloud) -> None:
    """Nothing is let in from outside; what is said goes over the data channel, whole, and is acknowledged."""
    with sky.Compute(
        provider=aws.provider(use_ssm=True),
        machine="m7i.large",
        allocation="on-demand",
        console=False,
        bootstrap_timeout=20,
    ) as pool:
        assert 5 == (add(2, 3) >> pool)
        assert 300_000 == len(told(300_000) >> pool)
        assert "skyward-closed" in aws.groups()
        assert [] == [fault for session in aws.ask("sessions") for fault in session["faults"]]
        opened = [session for session in aws.ask("sessions") if session["state"] == "open"]
        assert max(session["sent"] for session in opened) > 300_000
    until(lambda: {"closed"} == {session["state"] for session in aws.ask("sessions")})
    # The agent comes online a while after the machine runs; until then the command says so and exits.
    asked = [call for call in aws.calls() if call["name"] == "ssm:StartSession"]
    assert len(asked) > len(aws.ask("sessions")) > 0
    # What the plugin overlooks is said once more.
    assert any(session["again"] >= 1 for session in aws.ask("sessions"))
    assert {str(aws.port)} == {call["params"]["Parameters"]["portNumber"][0] for call in asked}
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


@pytest.mark.usefixtures("command", "without_hosts")
def test_a_session_is_refused_as_aws_refuses_it(aws: Cloud) -> None:
    """A machine that is not connected, credentials without the right, and a channel without its token."""
    start = ["aws", "ssm", "start-session", "--document-name", "AWS-StartSSHSession", "--parameters", "portNumber=22"]
    env = {**os.environ, **aws.environment()}
    words = [*start, "--region", "us-east-1", "--target", "i-0123456789abcdef0"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=30)
    assert (254, "") == (done.returncode, done.stdout)
    assert "(TargetNotConnected) when calling the StartSession operation: i-0123456789abcdef0 is not" in done.stderr
    aws.allow(["sts:GetCallerIdentity"])
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=30)
    assert (254, True) == (done.returncode, "(AccessDeniedException)" in done.stderr)


def test_a_message_has_the_layout_that_the_plugin_writes() -> None:
    """Head of 116 bytes and the payload's length; the halves of the id are turned; what is broken is refused."""
    name = uuid.UUID("dd01e56b-ff48-483e-a508-b5f073f31b16")
    data = Message(kind=INPUT, number=7, payload_kind=1, payload=b"payload", id=name, flags=1).written()
    assert (116).to_bytes(4) + b"input_stream_data".ljust(32) + (1).to_bytes(4) == data[:40]
    assert (7).to_bytes(8) + (1).to_bytes(8) == data[48:64]
    assert name.bytes[8:] + name.bytes[:8] == data[64:80]
    assert (1).to_bytes(4) + (7).to_bytes(4) + b"payload" == data[112:]
    assert ("input_stream_data", 7, name, b"payload") == (
        (read := Message.read(data)).kind,
        read.number,
        read.id,
        read.payload,
    )
    with pytest.raises(AssertionError, match="the digest is wrong"):
        Message.read(data[:-1] + b"x")
    assert json.loads(Message.read(Message(kind=ACK, payload=b"{}").written()).payload) == {}
