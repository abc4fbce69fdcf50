"""Run commands on a machine, whatever the login shell is."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from skyward.errors import TransportError, UnreachableError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection


MOST = 1 << 20
"""Bytes that a command may print, on each of its streams; ours print some hundred."""

_PIECE = 64 << 10

_CHANGED = frozenset("\\'!\n")
"""What one of sh, csh and fish does not pass on as it is between single quotes."""

_RUN = 'eval "$(printf %b "$1")"'
_LISTEN = 'while IFS= read -r line; do eval "$(printf %b "$line")"; done'


class Done(NamedTuple):
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


class Process(NamedTuple):
    """A command that runs on a machine, and what it says."""

    channel: Any
    stdout: Any
    stderr: Any

    def close(self) -> None:
        """End its input, and close it."""
        import asyncssh

        with contextlib.suppress(OSError, asyncssh.Error):
            self.channel.write_eof()
        self.channel.close()


async def begin(connection: SSHClientConnection, command: str, data: bytes = b"", *, ends: bool = True) -> Process:
    """
    Start a command, and send its input as soon as the server has room for it.

    OpenSSH's has none until the command runs, so that input costs a round trip that a command line does not.

    Args:
        connection: The machine.
        command: The command line, for the login shell.
        data: What it reads first.
        ends: Whether its input ends with that.

    Raises:
        asyncssh.Error: If it cannot be started, or the connection is lost.
        OSError: Likewise.
    """
    import asyncssh
    from asyncssh.stream import SSHClientStreamSession

    def say(channel: Any) -> None:
        with contextlib.suppress(OSError):
            if data:
                channel.write(data)
            if ends:
                channel.write_eof()

    class Session(SSHClientStreamSession):  # type: ignore[type-arg]
        def connection_made(self, chan: Any) -> None:
            super().connection_made(chan)
            # Behind the request for the command, which asyncssh sends before the loop does anything else.
            asyncio.get_running_loop().call_soon(say, chan)

    channel, session = await connection.create_session(
        Session,
        command,
        encoding=None,
        # What ~/.ssh/config asks for besides would be asked for first, and waited for.
        x11_forwarding=False,
        request_pty=False,
    )
    made: Any = session
    return Process(
        channel, asyncssh.SSHReader(made, channel), asyncssh.SSHReader(made, channel, asyncssh.EXTENDED_DATA_STDERR)
    )


class MachineShell:
    """
    A shell on a machine that runs one script after the other, each with what it reads, over one channel.

    What is said to it travels one way: only an answer costs a round trip.

    Args:
        process: The shell.
    """

    def __init__(self, process: Process) -> None:
        self.process = process

    def say(self, script: str, data: bytes = b"") -> None:
        """
        Send a script, which runs after those before it.

        Args:
            script: What to run.
            data: What it reads; all of it, because what is left would be taken for the next script.
        """
        self.process.channel.write(spelled(script) + data)

    def close(self) -> None:
        """Close it: it ends after the scripts that it was given."""
        self.process.close()


async def open_shell(connection: SSHClientConnection, script: str, *, timeout: float) -> tuple[MachineShell, Done]:
    """
    Start a shell that listens, and run a first script in it.

    Args:
        connection: The machine.
        script: What to run; its exit does not end the shell.
        timeout: Seconds it may take.

    Returns:
        The shell, and what the script printed; where there is no such shell, what was said instead.

    Raises:
        UnreachableError: If the connection is lost meanwhile.
        TransportError: If it does not end in time, or prints more than `MOST`.
    """
    import asyncssh

    token = secrets.token_hex(8)
    first = f"(\n{script}\n)\nprintf '\\n@@%s %s\\n' {token} $?"
    process: Process | None = None
    try:
        async with asyncio.timeout(timeout):
            process = await begin(connection, command_line(f"{_RUN}; {_LISTEN}", first), ends=False)
            done = await _answer(process, f"\n@@{token} ".encode())
    except TimeoutError:
        raise TransportError(f"A command on the machine did not end within {timeout:g} s.") from None
    except (asyncssh.Error, OSError) as error:
        raise UnreachableError(f"The connection was lost while a command ran: {error}.") from error
    except BaseException:
        if process is not None:
            process.close()
        raise
    return MachineShell(process), done


def command_line(program: str, script: str) -> str:
    r"""
    Write the command line that runs a script, for any login shell: on one line, and with nothing that one would change.

    Every user of the machine can read it.

    Args:
        program: What is run by `sh`, with the script as its first word, spelled for `printf %b`.
        script: The script.

    >>> command_line('eval "$(printf %b "$1")"', "echo 'a\\b!'\n")
    'exec sh -c \'eval "$(printf %b "$1")"\' sh \'echo \\0047a\\0134b\\0041\\0047\\0012\''
    """
    word = "".join(f"\\{ord(char):04o}" if char in _CHANGED else char for char in script)
    return f"exec sh -c {quoted(program)} sh '{word}'"


def script_line(script: str) -> str:
    r"""
    Write the command line that runs a script which reads what the command line reads, for any login shell.

    Args:
        script: The script; every user of the machine can read it.

    >>> script_line("ls -l")
    'exec sh -c \'eval "$(printf %b "$1")"\' sh \'ls -l\''
    """
    return command_line(_RUN, script)


def spelled(script: str) -> bytes:
    r"""
    Write a script as the one line by which a shell that listens takes it.

    >>> spelled("one\ntwo")
    b'one\\ntwo\n'
    """
    return script.replace("\\", r"\\").replace("\n", r"\n").encode() + b"\n"


async def _answer(process: Process, mark: bytes) -> Done:
    """Read what a script prints up to a mark and its exit status; to the end, if there is no mark."""
    data = bytearray()
    while (at := data.find(mark)) < 0 or b"\n" not in data[at + len(mark) :]:
        piece = await process.stdout.read(_PIECE)
        if not piece:
            err = await _all_of(process.stderr)
            await process.channel.wait_closed()
            return _done(process, bytes(data), err)
        data += piece
        _bounded(data)
    code = bytes(data[at + len(mark) :]).split(b"\n")[0]
    return Done(int(code) if code.isdigit() else 128, bytes(data[:at]).decode("utf-8", "replace"), "")


def _done(process: Process, out: bytes, err: bytes) -> Done:
    status = process.channel.get_exit_status()
    return Done(128 if status is None else status, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


async def run(connection: SSHClientConnection, script: str, *, timeout: float, data: bytes = b"") -> Done:
    """
    Run a POSIX shell script and wait for its end.

    Args:
        connection: The machine.
        script: What to run.
        timeout: Seconds it may take.
        data: Its standard input.

    Raises:
        UnreachableError: If the connection is lost meanwhile.
        TransportError: If it does not end in time, or prints more than `MOST`.
    """
    import asyncssh

    try:
        async with asyncio.timeout(timeout):
            process = await begin(connection, script_line(script), data)
            out, err = await _output(process)
    except TimeoutError:
        raise TransportError(f"A command on the machine did not end within {timeout:g} s.") from None
    except (asyncssh.Error, OSError) as error:
        raise UnreachableError(f"The connection was lost while a command ran: {error}.") from error
    return _done(process, out, err)


def quoted(script: str) -> str:
    """
    Quote a script of one line for any login shell.

    >>> quoted("echo 'a'")
    "'echo '\\\\''a'\\\\'''"
    """
    return "'" + script.replace("'", "'\\''") + "'"


async def _output(process: Process) -> tuple[bytes, bytes]:
    """Read both streams to their ends, side by side: either may wait for the other."""
    reading = [asyncio.ensure_future(_all_of(stream)) for stream in (process.stdout, process.stderr)]
    try:
        out, err = await asyncio.gather(*reading)
        await process.channel.wait_closed()
    finally:
        for one in reading:
            one.cancel()
        process.channel.close()
    return out, err


async def _all_of(stream: Any) -> bytes:
    data = bytearray()
    while piece := await stream.read(_PIECE):
        data += piece
        _bounded(data)
    return bytes(data)


def _bounded(data: bytearray) -> None:
    if len(data) > MOST:
        end = data[-100:].decode("utf-8", "replace")
        raise TransportError(
            f"A command on the machine printed more than {MOST} bytes, and was given up. It last printed {end!r}.",
            hint="Log in there: what runs at every login, such as ~/.bashrc, may print without end.",
        )
