"""
The guardian: a process that outlives the client, and ends its machines where these cannot end their own bill.

It is started before anything is rented, and knows that the client died when their socket ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable

from skyward.engine.guardian.guardian_messages import Client, charged, frame, framed, message
from skyward.engine.guardian.guardian_termination import GuardianTermination
from skyward.engine.instances.detached_records import DETACHED
from skyward.engine.instances.owner_lock import acquire, release
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import SkywardError
from skyward.plan.instances.guardian_duty import Duty, due, pause, spared, take

LEASE_SPARE = 60.0
"""Seconds that machines with a lease have to end by themselves, before they are ended."""

LONG_LOOK = 30.0
"""Seconds between two looks whether a pool was attached, once it has nothing but nodes with a lease."""

LOOK = 2.0
"""Seconds between two looks whether the client still lives, or whether it is time."""

SPREAD = 1.0
"""Seconds within which guardians begin that could begin at the same time."""

PATIENCE = 24 * 3600.0
"""Seconds after the client's death until machines that cannot be ended are left to their owner."""

_BUFFER = 1 << 20

# It also counts while the computer sleeps, as bills do; elsewhere than on Linux the monotonic clock does so itself.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Guardian:
    """
    Listen to one client, and end its machines after its death.

    Args:
        reader: What the client says.
        writer: The way to it.
        clock: Returns the time, also that in which the computer slept, in seconds.
        parent: Returns which process has this one as its child now.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        clock: Callable[[], float],
        parent: Callable[[], int] = os.getppid,
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._now = clock
        self._parent = parent
        self._hurry = asyncio.Event()
        self._handle: ProviderHandle
        self._duty: Duty
        self._client: Client

    async def guard(self) -> None:
        """Guard until nothing is left to terminate."""
        # A computer that is shut down asks like this; to end the client, the client has to be signalled.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._hurry.set)
        if not await self._begun():
            return
        listening = asyncio.create_task(self._listen())
        # A child that the client forked may hold its end of the socket for long.
        while not listening.done() and self._parent() == self._client.pid:
            await asyncio.wait({listening}, timeout=LOOK)
        died = self._now()
        listening.cancel()
        self._writer.close()
        if self._duty.idle:
            return
        ending = GuardianTermination(self._handle, self._duty)
        ending.note(
            f"its pool was left with process {self._client.pid}; its machines are ended "
            f"{'now' if self._duty.at_once else f'in {self._duty.ttl:g} s'}"
        )
        # The guardians of one client's pools do not all ask at once.
        await self._wait_until(due(self._duty, died=died) + SPREAD * random.random())
        if self._duty.lease and not self._duty.at_once and not await self._lease_over(ending, died):
            ending.note("its pool is another client's, or nothing of it is left")
            ending.close()
            return
        await self._end(ending, died)
        ending.close()

    async def _lease_over(self, ending: GuardianTermination, died: float) -> bool:
        """
        Wait until a pool's lease is over, and end before what is no node of it that another client may go on with.

        What is ended is ended under the pool's own lock, without which no client attaches it.

        Returns:
            Whether the rest of the pool is to be ended: not if it was attached, or this computer is being shut down,
            as each of its nodes has a watchdog.
        """
        pool_id, over = self._duty.pool_id, False
        while not self._hurry.is_set():
            try:
                if not acquire(pool_id):
                    return False
                about = next((one for one in DETACHED.heads() if one.pool_id == pool_id), None)
                if about is None or time.time() > about.ends_at + LEASE_SPARE:
                    return True
                if not over:
                    booting = GuardianTermination(self._handle, spared(self._duty, about.machines))
                    over = await booting.attempt(self._now() - died)
                    booting.close()
                release(pool_id, over=False)
            except (OSError, SkywardError) as error:
                ending.note(f"whether its pool was attached is unknown: {error}")
                if self._now() > died + self._duty.lease + LEASE_SPARE:
                    return True
            await self._wait_until(self._now() + (LONG_LOOK if over else LOOK))
        return False

    async def _begun(self) -> bool:
        """Take the charge over; False where that fails, which is reported to the client."""
        try:
            self._client, inner = message(await frame(self._reader))
        except EOFError:
            return False
        os.environ.clear()
        os.environ.update(self._client.environ)
        sys.path[:] = self._client.path
        try:
            provider, self._duty = charged(inner)
            self._handle = ProviderHandle(provider)
        except Exception as error:
            await self._answer(f"{type(error).__name__}: {error}")
            return False
        await self._answer()
        return True

    async def _listen(self) -> None:
        """Record what the client says until it is dead or says that nothing is left to guard."""
        while not self._duty.dismissed:
            try:
                body = await frame(self._reader)
            except EOFError:
                return
            try:
                self._duty = take(self._duty, message(body))
            except Exception as error:
                await self._answer(f"{type(error).__name__}: {error}")
            else:
                await self._answer()

    async def _answer(self, trouble: str = "") -> None:
        with contextlib.suppress(OSError):
            # Words that no encoding has must not pass for the client's death.
            self._writer.write(framed(trouble.encode(errors="backslashreplace")))
            await self._writer.drain()

    async def _wait_until(self, moment: float) -> None:
        """Wait, unless this computer is being shut down; asyncio's own clock stands still while it sleeps."""
        while (left := moment - self._now()) > 0 and not self._hurry.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), min(left, LOOK))

    async def _end(self, ending: GuardianTermination, died: float) -> None:
        """End machines until there is none for certain, or for as long as it makes sense."""
        while not await ending.attempt(self._now() - died):
            if self._now() - died > PATIENCE:
                ending.give_up()
                return
            self._hurry.clear()
            rest = pause(ending.failures, random.random()) if ending.failures else LOOK
            await self._wait_until(self._now() + rest)
        await ending.settle()


def now() -> float:
    """Return the time of a clock that runs while the computer sleeps, in seconds."""
    return time.clock_gettime(_CLOCK)


def main() -> None:
    """Run the guardian of the client at the other end of the standard input."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    asyncio.run(_serve())


async def _serve() -> None:
    connection = socket.socket(fileno=os.dup(0))
    reader, writer = await asyncio.open_connection(sock=connection, limit=_BUFFER)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    await Guardian(reader, writer, clock=now).guard()


if __name__ == "__main__":
    main()
