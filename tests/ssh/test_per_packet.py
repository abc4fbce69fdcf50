"""Less is done for each packet: no empty one before it, unless the cipher needs it, and no timer set anew."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import asyncssh
import pytest

from skyward.model.instances.machine import SSHAddress
from skyward.ssh import dial as dialling
from skyward.ssh.dial import dial
from tests.ssh.conftest import Site
from tests.waiting import until


@pytest.fixture
def packets(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Have asyncssh tell of every packet."""
    asyncssh.set_debug_level(3)
    with caplog.at_level(logging.DEBUG, "asyncssh"):
        yield caplog
    asyncssh.set_debug_level(1)


def address_of(site: Site) -> SSHAddress:
    """Return the address of the first host."""
    host = site.hosts[0]
    return SSHAddress(
        host=host.address, port=host.port, user="root", keys=(str(site.key),), known_hosts=str(site.known_hosts)
    )


def sent(site: Site, packets: pytest.LogCaptureFixture) -> list[str]:
    """List the kinds of packets that are sent for a command, once logged in."""

    async def scenario() -> None:
        async with await dial(address_of(site), patience=5.0) as connection:
            packets.clear()
            assert "here\n" == (await connection.run("echo here", check=True)).stdout

    asyncio.run(scenario())
    return re.findall(r"Sent (MSG_\w+)", packets.text)


def test_ciphers_that_authenticate_need_none(site: Site, packets: pytest.LogCaptureFixture) -> None:
    """Only what is meant for the other end is sent."""
    found = sent(site, packets)
    assert "MSG_CHANNEL_REQUEST" in found
    assert "MSG_IGNORE" not in found


def test_other_ciphers_have_theirs(site: Site, packets: pytest.LogCaptureFixture) -> None:
    """What protects them is left as it is."""
    site.hosts[0].configure("Ciphers aes256-ctr")
    assert "MSG_IGNORE" in sent(site, packets)


def test_silent_server_is_asked_for_a_sign_of_life(
    site: Site, packets: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Again and again, as long as it answers."""
    monkeypatch.setattr(dialling, "KEEP_ALIVE", 0.05)

    async def scenario() -> None:
        async with await dial(address_of(site), patience=5.0):
            packets.clear()
            await asyncio.to_thread(until, lambda: packets.text.count("Got keepalive response") >= 5)

    asyncio.run(scenario())


def test_server_that_is_talking_is_not_asked(
    site: Site, packets: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arrives is a sign of life; the timer that looks for one is not set anew for it."""
    monkeypatch.setattr(dialling, "KEEP_ALIVE", 5.0)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with await dial(address_of(site), patience=5.0) as connection:
            packets.clear()
            timers = 0
            call_at = loop.call_at

            def counted(*args: Any, **options: Any) -> asyncio.TimerHandle:
                nonlocal timers
                timers += 1
                return call_at(*args, **options)

            monkeypatch.setattr(loop, "call_at", counted)
            done = await connection.run("for i in $(seq 300); do echo $i; sleep 0.001; done", check=True)
            assert str(done.stdout).split()[-1] == "300"
            assert timers < 20

    asyncio.run(scenario())
    assert packets.text.count("Received MSG_CHANNEL_DATA") > 20
    assert "Sending keepalive request" not in packets.text


def test_server_that_answers_no_more_is_given_up(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """After it was asked several times."""
    monkeypatch.setattr(dialling, "KEEP_ALIVE", 0.1)

    async def scenario() -> None:
        async with await dial(address_of(site), patience=5.0) as connection:
            await connection.run("true", check=True)
            async with asyncio.timeout(20):
                stopped = site.hosts[0].connections()
                for pid in stopped:
                    os.kill(pid, signal.SIGSTOP)
                try:
                    await connection.wait_closed()
                finally:
                    for pid in stopped:
                        os.kill(pid, signal.SIGCONT)

    asyncio.run(scenario())
