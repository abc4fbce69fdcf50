"""A command on a machine whose standard streams are files of this process: a terminal, pipes, or an archive's."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from attrs import frozen

from skyward.errors import TransportError, UnreachableError

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection, SSHClientProcess

__all__ = ["Streams", "attached"]

_PIECE = 64 << 10
_STARTING = 20.0


@frozen(kw_only=True)
class Streams:
    """
    Name the files of this process that a command has as its own, by their descriptors.

    Args:
        source: What it reads.
        sink: Where what it prints goes.
        errors: Where its complaints go.
        terminal: Whether `source` is a terminal, and the command gets one of that size.
    """

    source: int = 0
    sink: int = 1
    errors: int = 2
    terminal: bool = False


async def attached(connection: SSHClientConnection, command: str | None, streams: Streams) -> int:
    """
    Run a command with streams of this process, and return its exit code.

    Args:
        connection: The machine.
        command: The command line, for the login shell; None is that shell itself.
        streams: What it reads and writes.

    Raises:
        TransportError: If it cannot be started.
        UnreachableError: If the connection is lost before it ends.
        OSError: If what it prints cannot be written.
    """
    import asyncssh

    size = os.get_terminal_size(streams.source) if streams.terminal else None
    pty: dict[str, Any] = {"request_pty": False}
    if size is not None:
        pty = {"term_type": os.environ.get("TERM", "xterm"), "term_size": (size.columns, size.lines)}
    try:
        async with asyncio.timeout(_STARTING):
            process = await connection.create_process(command, encoding=None, x11_forwarding=False, **pty)
    except TimeoutError:
        raise TransportError(f"The machine did not start a command within {_STARTING:g} s.") from None
    except (asyncssh.Error, OSError) as error:
        raise TransportError(f"The machine does not start a command: {error}.") from error
    with contextlib.ExitStack() as stack:
        if size is not None:
            stack.enter_context(_raw(streams.source))
            stack.enter_context(_resized(process, streams.source))
        _feed(process, streams.source)
        printing = (_copy(process.stdout, streams.sink), _copy(process.stderr, streams.errors))
        try:
            await asyncio.gather(*printing)
            await process.wait_closed()
        except asyncssh.Error as error:
            raise UnreachableError(f"The connection was lost while a command ran: {error}.") from error
        finally:
            process.close()
    if process.exit_status is None and process.exit_signal is None:
        raise UnreachableError("The connection was lost before the command ended.")
    # Of one that a signal has ended, the number of the signal is not sent.
    return 255 if process.exit_status is None else process.exit_status


def _feed(process: SSHClientProcess[bytes], source: int) -> None:
    """Read in a thread: files, terminals and devices cannot all be waited for in an event loop."""
    loop, own = asyncio.get_running_loop(), os.dup(source)

    async def give(data: bytes) -> None:
        process.stdin.write(data)
        await process.stdin.drain()

    def read() -> None:
        # The command or the loop may be over, or a terminal be gone.
        with contextlib.suppress(Exception):
            while data := os.read(own, _PIECE):
                asyncio.run_coroutine_threadsafe(give(data), loop).result()
        os.close(own)
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_end, process)

    threading.Thread(target=read, name="skyward-stdin", daemon=True).start()


def _end(process: SSHClientProcess[bytes]) -> None:
    with contextlib.suppress(OSError):
        process.stdin.write_eof()


async def _copy(stream: Any, sink: int) -> None:
    while data := await stream.read(_PIECE):
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(sink, rest) :]


@contextlib.contextmanager
def _raw(source: int) -> Iterator[None]:
    """Send each key to the command as it is, Ctrl-C too."""
    import termios
    import tty

    before = termios.tcgetattr(source)
    # What was typed ahead stays.
    tty.setraw(source, termios.TCSADRAIN)
    try:
        yield
    finally:
        termios.tcsetattr(source, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _resized(process: SSHClientProcess[bytes], source: int) -> Iterator[None]:
    """Pass on that the terminal's size has changed."""
    loop = asyncio.get_running_loop()

    def changed() -> None:
        with contextlib.suppress(OSError):
            size = os.get_terminal_size(source)
            process.change_terminal_size(size.columns, size.lines)

    loop.add_signal_handler(signal.SIGWINCH, changed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)
