"""Commands on machines: what they print is read to its end, and no further than any of ours would print."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncssh
import pytest

from skyward.errors import TransportError, UnreachableError
from skyward.ssh.shell import MOST, Done, run

Session = Callable[[Any], Awaitable[None]]


class Open(asyncssh.SSHServer):
    """A server that lets everybody in."""

    def begin_auth(self, username: str) -> bool:
        return False


@asynccontextmanager
async def machine(session: Session) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """Be connected to a machine that does this instead of any command."""
    server = await asyncssh.create_server(
        Open, "127.0.0.1", 0, server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        process_factory=session, encoding=None,
    )  # fmt: skip
    async with server, asyncssh.connect("127.0.0.1", server.get_port(), known_hosts=None, config=None) as connection:
        yield connection


def done(session: Session, *, data: bytes = b"", timeout: float = 30.0) -> Done:
    """Run a command on such a machine."""

    async def scenario() -> Done:
        async with machine(session) as connection:
            return await run(connection, "true", timeout=timeout, data=data)

    return asyncio.run(scenario())


def test_both_streams_are_read_to_their_ends() -> None:
    """Whichever is the larger; bytes that are no text are shown as such."""

    async def session(process: Any) -> None:
        process.stderr.write(b"e" * (MOST - 1))
        process.stdout.write(b"out \xff")
        process.exit(3)

    assert Done(3, "out \ufffd", "e" * (MOST - 1)) == done(session)


def test_input_of_any_size_is_sent() -> None:
    """A machine gets uv that way."""

    async def session(process: Any) -> None:
        size = 0
        while piece := await process.stdin.read(1 << 16):
            size += len(piece)
        process.stdout.write(str(size).encode())
        process.exit(0)

    assert Done(0, str(8 * MOST), "") == done(session, data=bytes(8 * MOST))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_machine_that_prints_without_end_is_given_up(stream: str) -> None:
    """And costs the client next to no memory; the error says what it printed."""
    printed = 0

    async def session(process: Any) -> None:
        nonlocal printed
        try:
            while printed < 256 * MOST:
                getattr(process, stream).write(b"spam" * (64 << 10))
                await getattr(process, stream).drain()
                printed += 256 << 10
        except (OSError, asyncssh.Error):
            return

    tracemalloc.start()
    try:
        with pytest.raises(TransportError, match=rf"printed more than {MOST} bytes.*spamspam"):
            done(session)
        assert tracemalloc.get_traced_memory()[1] < 24 * MOST
    finally:
        tracemalloc.stop()
    assert printed < 32 * MOST


def test_a_lost_machine_and_a_silent_one_are_different_errors() -> None:
    """One may be reached again, the other does not answer."""

    async def leaves(process: Any) -> None:
        process.channel.get_connection().abort()

    async def hangs(process: Any) -> None:
        await asyncio.sleep(60)

    with pytest.raises(UnreachableError, match="was lost while a command ran"):
        done(leaves)
    with pytest.raises(TransportError, match=r"did not end within 0.2 s"):
        done(hangs, timeout=0.2)
