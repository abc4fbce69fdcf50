"""Many machines are dialled: side by side, but not all at once."""

from __future__ import annotations

import asyncio

from skyward.errors import UnreachableError
from skyward.model.machine import SSHAddress
from skyward.ssh.dial import AT_ONCE, dial


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
