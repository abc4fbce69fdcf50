"""A host that does not answer is reported as being tried, long before it is given up."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator

import pytest

import skyward as sky
from skyward.errors import UnreachableError
from skyward.model.instances.machine import SSHAddress
from skyward.providers import ssh
from skyward.ssh import boot_wait as waiting, dial as dialling


@pytest.fixture
def silent() -> Iterator[SSHAddress]:
    """A host that lets a connection in and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield SSHAddress(host="127.0.0.1", port=server.getsockname()[1], user="nobody")


@pytest.fixture
def closed() -> SSHAddress:
    """A host on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return SSHAddress(host="127.0.0.1", port=server.getsockname()[1], user="nobody")


def reported(address: SSHAddress, patience: float) -> list[str]:
    """Dial a host that never answers, and return what is reported meanwhile."""
    lines: list[str] = []
    with pytest.raises(UnreachableError):
        asyncio.run(dialling.dial(address, patience=patience, report=lines.append))
    return lines


def test_it_is_told_once_that_a_host_is_tried(
    silent: SSHAddress, closed: SSHAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason, as far as one is known, and how long it will be tried; not where that is over at once."""
    monkeypatch.setattr(waiting, "SOON", 0.1)
    monkeypatch.setattr(dialling, "LOGIN_TIMEOUT", 0.4)
    assert [f"{silent} has not answered yet. It is tried for 0.3 s."] == reported(silent, 0.3)
    [line] = reported(closed, 0.5)
    assert line.startswith(f"{closed} cannot be reached: ")
    assert line.endswith(" It is tried for 0.5 s.")
    assert [] == reported(silent, 0.05)


def test_the_pool_tells_it_while_it_waits(silent: SSHAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """As an event, which the consoles show, a second after a host was first tried."""
    assert 1.0 == waiting.SOON
    monkeypatch.setattr(waiting, "SOON", 0.1)
    monkeypatch.setattr(ssh, "LOOKING", 0.5)
    monkeypatch.setattr(dialling, "LOGIN_TIMEOUT", 0.6)
    heard: list[str] = []
    pool = sky.Compute(provider=sky.SSH([silent]), console=False, logging=False)
    pool.on(sky.Error, lambda event: heard.append(event.message))
    with pytest.raises(UnreachableError):
        pool.open()
    assert [f"{silent} has not answered yet. It is tried for 0.5 s."] == heard[:1]


def test_where_nothing_listens_the_log_has_it(caplog: pytest.LogCaptureFixture) -> None:
    """Such as while several providers are asked what they have."""
    heard: list[str] = []
    with waiting.listening(heard.append):
        waiting.report("one")
    with caplog.at_level(logging.WARNING):
        waiting.report("two")
    assert (["one"], ["two"]) == (heard, [record.message for record in caplog.records])
