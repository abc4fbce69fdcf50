"""Commands on machines: what they print is read to its end, and no further than any of ours would print."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
import subprocess
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncssh
import pytest
from hypothesis import given, settings, strategies as st

from skyward.errors import TransportError, UnreachableError
from skyward.ssh.shell import MOST, Done, command_line, open_shell, run, spelled

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


SHELLS = [name for name in ("sh", "bash", "dash", "csh", "tcsh", "fish", "zsh") if shutil.which(name)]
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)


@pytest.mark.parametrize("login", SHELLS)
@settings(max_examples=25)
@given(TEXT)
def test_every_login_shell_passes_a_script_on_as_it_is(login: str, text: str) -> None:
    """Quotes, backslashes, exclamation marks and ends of lines, of which each shell changes others."""
    line = command_line('eval "$(printf %b "$1")"', f"printf %s {shlex.quote(text)}")
    assert "\n" not in line
    assert text.encode() == subprocess.run([login, "-c", line], check=True, capture_output=True).stdout


@settings(max_examples=25)
@given(st.lists(TEXT, min_size=1, max_size=3))
def test_scripts_arrive_one_after_the_other(texts: list[str]) -> None:
    """Each is one line, whatever is in it."""
    listen = 'while IFS= read -r line; do eval "$(printf %b "$line")"; done'
    said = b"".join(spelled(f"printf %s {shlex.quote(text)}\n") for text in texts)
    done = subprocess.run(["sh", "-c", listen], input=said, check=True, capture_output=True)
    assert "".join(texts).encode() == done.stdout


async def local(process: Any) -> None:
    """Run a command on this machine."""
    shell = await asyncio.create_subprocess_exec("sh", "-c", process.command, stdin=-1, stdout=-1)
    assert shell.stdin is not None
    assert shell.stdout is not None

    async def feed(to: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncssh.Error):
            while data := await process.stdin.read(1 << 16):
                to.write(data)
        to.close()

    feeding = asyncio.ensure_future(feed(shell.stdin))
    try:
        while data := await shell.stdout.read(1 << 16):
            process.stdout.write(data)
        code = await shell.wait()
    finally:
        feeding.cancel()
        # The loop may end before the transport has seen the end of each pipe, upon which it closes itself; and the
        # connection may end before the command.
        shell._transport.close()  # type: ignore[attr-defined]
    with contextlib.suppress(OSError):
        process.exit(code)


def test_a_shell_runs_one_script_after_the_other_with_what_each_reads() -> None:
    """Its first script may exit; bytes that are no text are read to the last, and no further."""

    async def scenario() -> None:
        async with machine(local) as connection:
            shell, first = await open_shell(connection, "echo 'it\\'\n(exit 2)\nexit 3", timeout=20.0)
            assert Done(3, "it\\\n", "") == first
            data = bytes(range(256))
            shell.say(f"dd bs=1 count={len(data)} 2>/dev/null | wc -c", data)
            shell.say("echo after")
            assert b"256" == (await shell.process.stdout.readline()).strip()
            assert b"after\n" == await shell.process.stdout.readline()
            shell.close()

    asyncio.run(scenario())


def test_what_is_no_shell_says_so() -> None:
    """A machine whose commands end at once, with something on its standard error."""

    async def refuses(process: Any) -> None:
        process.stderr.write(b"This account is not available.")
        process.exit(1)

    async def scenario() -> None:
        async with machine(refuses) as connection:
            _, said = await open_shell(connection, "echo", timeout=20.0)
            assert Done(1, "", "This account is not available.") == said

    asyncio.run(scenario())


def test_a_shell_that_prints_without_end_is_given_up() -> None:
    """As any command is."""

    async def session(process: Any) -> None:
        with contextlib.suppress(OSError, asyncssh.Error):
            while True:
                process.stdout.write(b"spam" * (64 << 10))
                await process.stdout.drain()

    async def scenario() -> None:
        async with machine(session) as connection:
            with pytest.raises(TransportError, match=rf"printed more than {MOST} bytes"):
                await open_shell(connection, "echo", timeout=20.0)

    asyncio.run(scenario())
