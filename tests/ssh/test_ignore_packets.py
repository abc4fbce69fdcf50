"""Calls travel without an empty packet before each, unless the cipher needs it."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterator

import asyncssh
import pytest

from skyward.model.machine import SSHAddress
from skyward.ssh.dial import dial
from tests.ssh.conftest import Site


@pytest.fixture
def packets(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Have asyncssh tell of every packet."""
    asyncssh.set_debug_level(3)
    with caplog.at_level(logging.DEBUG, "asyncssh"):
        yield caplog
    asyncssh.set_debug_level(1)


def sent(site: Site, packets: pytest.LogCaptureFixture) -> list[str]:
    """List the kinds of packets that are sent for a command, once logged in."""
    host = site.hosts[0]
    address = SSHAddress(
        host=host.address, port=host.port, user="root", keys=(str(site.key),), known_hosts=str(site.known_hosts)
    )

    async def scenario() -> None:
        async with await dial(address, patience=5.0) as connection:
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
