"""Machines are dialled: side by side, but not all at once; and those that are settling more than once."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from pathlib import Path

import pytest
from attrs import evolve

from skyward.errors import CredentialsError, HostKeyError, SkywardError, UnreachableError
from skyward.model.instances.machine import SSHAddress
from skyward.ssh.dial import AT_ONCE, dial
from tests.hosts import Host
from tests.simulated.loop import VirtualLoop
from tests.ssh.conftest import Site
from tests.waiting import until


def test_no_more_than_a_number_are_dialled_at_once() -> None:
    """A host that keeps everybody waiting until as many have come as may come sees no more than those."""
    entered, most, full = 0, 0, asyncio.Event()

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal entered, most
        entered += 1
        most = max(most, entered)
        if entered >= AT_ONCE:
            full.set()
        await full.wait()
        entered -= 1
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_server(keep, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            address = SSHAddress(host="127.0.0.1", port=port, user="nobody")
            dialled = [dial(address, patience=0.0) for _ in range(3 * AT_ONCE)]
            async with asyncio.timeout(40):
                ended = await asyncio.gather(*dialled, return_exceptions=True)
        assert {UnreachableError} == {type(end) for end in ended}, ended

    asyncio.run(scenario())
    assert most == AT_ONCE


def settling(site: Site, seconds: float) -> SSHAddress:
    """Return the address of a host that has not got its key yet, nor lets us in."""
    host = site.hosts[0]
    kept = host.base / "kept"
    kept.mkdir()
    for name in ("host_key", "host_key.pub", "authorized_keys"):
        shutil.copy2(host.base / name, kept / name)
    key = " ".join((host.base / "host_key.pub").read_text().split()[:2])
    host.new_host_key()
    (host.base / "authorized_keys").write_text("")
    again(host)
    return SSHAddress(
        host=host.address, port=host.port, user="root", keys=[str(site.key)], host_key=key, settling_s=seconds
    )


def settle(host: Host) -> None:
    """Give the host what its first boot gives it."""
    # A server reads its keys anew for each connection, and one that let a login in is not to be ended any more.
    host.stop()
    for path in (host.base / "kept").iterdir():
        shutil.copy2(path, host.base / path.name)
    host.start()


def again(host: Host) -> None:
    """Start the server anew."""
    host.stop()
    host.start()


def refused(host: Host) -> bool:
    """Say whether a client came and went without being let in."""
    return "Connection closed by" in Path(host.base / "sshd.log").read_text()


def test_a_host_that_is_settling_is_dialled_until_it_is_itself(site: Site) -> None:
    """Another key at first, and no login let in: nothing is sent, and it is tried again."""
    address, host = settling(site, 30.0), site.hosts[0]

    async def scenario() -> None:
        dialling = asyncio.create_task(dial(address, patience=30.0))
        await asyncio.to_thread(until, lambda: refused(host))
        assert not dialling.done()
        await asyncio.to_thread(settle, host)
        async with await dialling as connection:
            assert "there" == str((await connection.run("echo there")).stdout).strip()

    asyncio.run(scenario())
    assert 1 == host.entered()


@pytest.mark.parametrize(("known", "error"), [(True, HostKeyError), (False, CredentialsError)])
def test_a_host_that_does_not_settle_is_refused(site: Site, known: bool, error: type[SkywardError]) -> None:
    """After that time, for its key, or because it lets no login in."""
    address = settling(site, 0.3)
    if not known:
        own = " ".join((site.hosts[0].base / "host_key.pub").read_text().split()[:2])
        address = evolve(address, host_key=own)
    with pytest.raises(error):
        asyncio.run(dial(address, patience=30.0))


@pytest.mark.parametrize(("interval", "attempts"), [(None, 26), (0.5, 21), (4.0, 4)])
def test_a_host_is_dialled_again_as_often_as_is_said(
    monkeypatch: pytest.MonkeyPatch, interval: float | None, attempts: int
) -> None:
    """At an even pace; where nothing is said, later each time."""
    monkeypatch.setattr("skyward.ssh.dial.random.uniform", lambda least, most: most)
    missed: list[float] = []

    async def silent(address: SSHAddress) -> None:
        raise UnreachableError("nobody is there")

    monkeypatch.setattr("skyward.ssh.dial._dial_once", silent)

    async def scenario() -> None:
        clock = asyncio.get_running_loop().time
        with pytest.raises(UnreachableError, match="nobody is there"):
            await dial(
                SSHAddress(host="10.0.0.1"), patience=10.0, missed=lambda: missed.append(clock()), interval=interval
            )

    with contextlib.closing(VirtualLoop(sockets=False)) as loop:
        loop.run_until_complete(scenario())
    assert attempts == len(missed)
    assert 10.0 == pytest.approx(missed[-1], abs=0.1)
