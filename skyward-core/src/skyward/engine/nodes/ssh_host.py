"""A node on another machine, reached over SSH."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import shlex
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from skyward.engine.instances.recipe import Recipe
from skyward.engine.nodes.bootstrap_progress import BootstrapReader
from skyward.engine.nodes.host import OnClosed, OnFrame, Prepared
from skyward.engine.nodes.lingering_host import detach, linger, resume, succeed
from skyward.engine.nodes.supplies import send_runtime, send_uv
from skyward.engine.pool.event_loop import EngineLoop
from skyward.engine.source.bundle import runtime_bundle
from skyward.errors import ProvisionError, SkywardError, TransportError, UnreachableError
from skyward.link.channel import Link
from skyward.link.joining import Stream
from skyward.link.wire import Wire
from skyward.model.instances.machine import SSHAddress
from skyward.plan.bootstrap.bootstrap_script import Ground, render
from skyward.plan.bootstrap.node_scripts import ask, call_path, leave, relay, stop
from skyward.ssh import flushing, probe
from skyward.ssh.acceptance import check_usable
from skyward.ssh.caller import Caller
from skyward.ssh.dial import dial
from skyward.ssh.follow import follow, start
from skyward.ssh.forward import SocketDialer, forwarded
from skyward.ssh.link import SSHLink
from skyward.ssh.rescue import fetch, rescue
from skyward.ssh.shell import run
from skyward.ssh.visits import Visit, visit

if TYPE_CHECKING:
    from asyncssh import SSHClientConnection

_log = logging.getLogger(__name__)

AGENT = ("$PYTHON", "-P", "-m", "skyward.node.agent.agent_main", "--listen", "$NODE")
"""The command line of an agent on another machine; the name of the session follows."""

DIALLING = 20.0
"""Seconds for which a machine is dialled that a port is to be reached on."""

COMMAND_TIMEOUT = 30.0
"""Seconds for one of our own commands."""

_LONGEST_INTERVAL = 5.0
_LAST_ATTEMPT = 0.5
_AFTER_LEAVING = 3.0
_PRESSED = 0.05
_LAST_WORDS = 10_000
_WITHOUT_TTL = 600.0


class SSHHost:
    """
    Make a machine into a node, speak to its agent, and leave nothing but the cache.

    Args:
        engine: The loop.
        address: The machine.
        name: The node's own name there: of its directory, and the mark of its processes.
        recipe: What becomes of it.
    """

    def __init__(self, engine: EngineLoop, address: SSHAddress, name: str, recipe: Recipe) -> None:
        self._engine = engine
        self._address = address
        self._name = name
        self._recipe = recipe
        self.session = recipe.resumed.session if recipe.resumed is not None else secrets.token_hex(16)
        self._connection: SSHClientConnection | None = None
        self._dialling = asyncio.Lock()
        self._visit: Visit | None = None
        self._found: probe.Findings | None = None
        self._caller: Caller | None = None
        self._link: SSHLink | None = None
        self._words = ""
        self._left: SSHClientConnection | None = None
        self._rescue: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._ended = False
        self._sockets = SocketDialer(str(address))

    async def prepare(self) -> Prepared:
        """
        Run the bootstrap, and return the interpreter that it made.

        Raises:
            ProvisionError: If the machine cannot be made ready.
            SkywardError: If it cannot be reached.
        """
        recipe = self._recipe
        if recipe.resumed is not None:
            # All of it is there, and only looked for.
            connection = await self._connect(DIALLING)
            self._found = (self._visit or await visit(connection, timeout=COMMAND_TIMEOUT)).found
            return Prepared(python="", env={})
        if recipe.ssh_timeout is not None:
            await self._let_in(recipe.ssh_timeout)
        try:
            async with asyncio.timeout(recipe.timeout):
                connection = await self._connect(recipe.timeout)
                made = await self._look(connection)
                found = self._found = made.found
                if wrong := recipe.faults(found):
                    raise ProvisionError(f"{self._address} is not what was rented: {' '.join(wrong)}")
                await send_runtime(connection, found, recipe, str(self._address))
                await send_uv(connection, found, recipe, str(self._address))
                python = await self._bootstrap(made)
                await succeed(await self._connect(recipe.timeout), recipe.before)
        except TimeoutError:
            raise ProvisionError(
                f"{self._address} was not ready within {recipe.timeout:g} s.{self._last()}",
                hint="Raise bootstrap_timeout, or look at what it waits for.",
            ) from None
        # What ~/.ssh/config said is known by the machine alone; where ports are mapped, its own is another one.
        port = None if self._address.port is not None else found.port
        return Prepared(python=python, env={"PYTHONPATH": self._runtime(found)}, ssh_port=port)

    async def open(self, on_frame: OnFrame, on_closed: OnClosed) -> Link:
        """
        Connect to the agent; from now on the link is kept alive.

        Raises:
            SkywardError: If it does not answer.
        """
        assert self._found is not None
        wire: Wire

        def lost(error: Exception | None) -> None:
            link.lost(error)
            self._recipe.unreachable()

        def closed(error: Exception | None) -> None:
            link.stop()
            if self._left is None or self._ended:
                on_closed(error)
            else:
                # What it has finished counts before it counts as lost.
                fetching = fetch(self._left, node, on_frame, wire.on_announced, partial(on_closed, error))
                self._rescue = asyncio.create_task(fetching)

        wire = Wire(
            self._engine.loop, self._engine.batch, self.session, on_frame=on_frame, on_closed=closed, on_lost=lost
        )
        if self._recipe.resumed is not None:
            wire.succeeds = self._recipe.resumed.before
        node = self._directory(self._found)
        # Nothing is wanted of a node before it was asked for anything.
        wire.on_announced = lambda _: False
        socket = f"{node}/agent.sock"
        link = self._link = SSHLink(
            wire,
            connect=self._connect,
            socket=socket,
            relay=relay(self._runtime(self._found), socket),
            ended=self._why_agent_ended,
            patience=self._recipe.ttl or _WITHOUT_TTL,
            interval=self._interval,
            where=self._name,
        )
        try:
            await link.start(self._caller)
        except TransportError:
            if self._recipe.resumed is not None and self._left is not None:
                # Its agent ended while no client was there; what it had finished is on its disk.
                await rescue(self._left, node, on_frame, lambda _: True)
            raise
        return wire

    async def dial_port(self, port: int) -> Stream:
        """
        Connect to a port of the machine, through its SSH connection, which is dialled again if it is lost.

        Raises:
            ConnectionError: If nothing listens there.
            SkywardError: If the machine cannot be reached, or refuses to forward.
        """
        for last in (False, True):
            connection = await self._connect(DIALLING)
            try:
                return await forwarded(connection, port, str(self._address))
            except UnreachableError:
                # The connection was lost without a sign; the next one is new.
                if last:
                    raise
        raise AssertionError

    async def dial_socket(self, path: str) -> Stream:
        """Connect to a Unix socket of the machine, as to that of its agent."""
        assert self._found is not None
        command = relay(self._runtime(self._found), path)
        return await self._sockets.dial(await self._connect(DIALLING), path, command)

    async def flush(self) -> None:
        """Flush all that was written to the machine's disk, but for the script, which holds the image's variables."""
        assert self._found is not None
        connection, node = await self._connect(DIALLING), self._directory(self._found)
        await flushing.flush(connection, node, self._recipe.timeout, str(self._address))

    async def unmount(self, folders: Sequence[str]) -> str:
        """Flush disks and unmount them, within `UNMOUNTING` seconds."""
        return await flushing.unmount(partial(self._connect, DIALLING), folders)

    async def answers(self) -> bool:
        """Return whether the machine lets us in and runs a command, whatever its agent does."""
        try:
            await run(await self._connect(DIALLING), ":", timeout=COMMAND_TIMEOUT)
        except SkywardError:
            return False
        return True

    def last_words(self) -> str:
        """Return the end of what the agent wrote, as far as it was asked for."""
        return self._words

    def leaving(self, patience: float) -> None:
        """Begin to wait at the machine for the agent's end, which is answered as soon as it comes."""
        connection = self._connection
        if self._found is not None and connection is not None and not connection.is_closed():
            self._leaving = asyncio.create_task(self._leave(connection, patience + _AFTER_LEAVING))

    async def end(self, patience: float) -> None:
        """
        End everything of the node on the machine, and remove its directory.

        Where the machine can terminate itself, its watchdog stays: its termination may be refused, or the client die.

        Args:
            patience: Seconds that the agent has to leave by itself.
        """
        self._ended = True
        if self._link is not None:
            self._link.stop()
        if self._rescue is not None:
            self._rescue.cancel()
        if self._caller is not None:
            await self._caller.close()
        if self._found is None and self._connection is None:
            return
        try:
            if not await self._left_already(patience):
                await self._leave(await self._connect(max(patience, 2.0)), patience)
        except SkywardError as error:
            ttl = self._recipe.ttl
            then = f"its watchdog ends it {ttl:g} s after it last heard from us" if ttl else "nothing will end it"
            _log.warning("%s could not be ordered to end what runs there for us (%s); %s.", self._address, error, then)

    async def _left_already(self, patience: float) -> bool:
        """Return whether what `leaving` began comes to its end in time."""
        if self._leaving is None:
            return False
        await asyncio.wait([self._leaving], timeout=patience + _AFTER_LEAVING)
        ended = self._leaving.done() and self._leaving.exception() is None
        self._leaving.cancel()
        return ended

    async def _leave(self, connection: SSHClientConnection, patience: float) -> None:
        script = stop(self._name, patience) if self._recipe.end else leave(self._name, patience)
        await run(connection, script, timeout=patience + COMMAND_TIMEOUT)

    @property
    def host_key(self) -> str:
        """Return the machine's host key, as in a file of known hosts; empty while there is no connection."""
        key = None if self._connection is None else self._connection.get_server_host_key()
        line: bytes = b"" if key is None else key.export_public_key()
        return line.decode().strip()

    async def linger(self, seconds: float) -> str:
        """Leave the machine waiting for the next pool, and return its host key."""
        return await linger(await self._connect(DIALLING), self._name, seconds)

    async def detach(self, seconds: float) -> str:
        """Leave the node to another client, and return the machine's host key."""
        return await detach(await self._connect(DIALLING), self._name, seconds)

    async def resume(self) -> None:
        """End the wait of a node that was left."""
        await resume(await self._connect(DIALLING), self._name)

    async def end_machine(self) -> bool:
        """Order the machine to terminate itself, and return whether it was reached."""
        if not self._recipe.end:
            return False
        # It may take the connection along, or a while.
        script = f"(trap '' HUP; exec {shlex.join(self._recipe.end)}) >/dev/null 2>&1 </dev/null &"
        try:
            done = await run(await self._connect(DIALLING), script, timeout=COMMAND_TIMEOUT)
        except SkywardError as error:
            _log.info("machine.not_reached_to_end %s reason=%s", self._name, error)
            return False
        return not done.code

    async def close(self) -> None:
        """Close the connection to the machine."""
        if self._link is not None:
            self._link.stop()
        if self._connection is not None:
            self._connection.close()
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1.0):
                    await self._connection.wait_closed()

    @property
    def _interval(self) -> float:
        return min(_LONGEST_INTERVAL, self._recipe.ttl / 4) if self._recipe.ttl else _LONGEST_INTERVAL

    async def _connect(self, patience: float) -> SSHClientConnection:
        """Return the connection, a new one if the last is lost."""
        async with self._dialling:
            if self._connection is None and self._recipe.kept is not None:
                self._visit = self._recipe.kept.take(self._address)
                self._connection = None if self._visit is None else self._visit.connection
            if self._connection is None or self._connection.is_closed():
                self._visit = None
                self._connection = await dial(
                    self._address,
                    patience=patience,
                    missed=self._recipe.unreachable,
                    report=self._waiting,
                    interval=self._recipe.ssh_retry_interval,
                )
            return self._connection

    async def _let_in(self, within: float) -> None:
        """Wait until the machine lets us in, no longer than it may take."""
        why = "no attempt has come to its end"
        try:
            # What an attempt says that ends with the time is worth more than that time is up.
            async with asyncio.timeout(within + _LAST_ATTEMPT):
                await self._connect(within)
            return
        except TimeoutError:
            pass
        except UnreachableError as error:
            why = str(error)
        raise UnreachableError(
            f"{self._address} did not accept SSH within {within:g} s: {why}",
            hint="Open its port to this machine, or raise ssh_timeout.",
        )

    def _waiting(self, line: str) -> None:
        """Report that the machine does not answer yet; once it is being terminated, that is of no interest."""
        if not self._ended:
            self._recipe.waiting(line)

    async def _look(self, connection: SSHClientConnection) -> Visit:
        made = self._visit or await visit(connection, timeout=COMMAND_TIMEOUT)
        check_usable(made.found, (made.said.err or made.said.out).strip(), str(self._address))
        return made

    async def _bootstrap(self, made: Visit) -> str:
        """Start the script, follow it to its end, and return the interpreter that it names."""
        token, found = secrets.token_hex(8), made.found
        node = self._directory(found)
        ground = Ground(cache=found.cache, node=node, runtime=runtime_bundle().digest, token=token)
        recipe = self._recipe
        script = render(
            recipe.image,
            recipe.ops,
            ground,
            agent=(*AGENT, self.session),
            ttl=recipe.ttl,
            life=recipe.life,
            end=recipe.end,
        )
        progress = BootstrapReader(token, recipe.tell, str(self._address))
        self._last = progress.last
        self._caller = Caller(made.connection, call_path(node))
        # Asked for before the script is sent, so that it is there when the agent looks for it.
        await asyncio.sleep(0)
        reading: AsyncGenerator[bytes, None] | None = start(made.shell, node, script, token, self._interval)
        offset = 0
        while True:
            try:
                reading = reading or follow(await self._connect(recipe.timeout), node, offset, self._interval)
                async with contextlib.aclosing(reading):
                    async for data in reading:
                        offset += len(data)
                        python = progress.take(data)
                        if python:
                            return python
                        while recipe.behind():  # noqa: ASYNC110  # handlers run in another thread
                            await asyncio.sleep(_PRESSED)
            except UnreachableError as error:
                if not offset:
                    # It may never have begun.
                    raise
                _log.info("bootstrap.link_lost %s reason=%s", self._name, error)
                recipe.unreachable()
                await asyncio.sleep(0.1)
                reading = None

    _last: Callable[[], str] = staticmethod(lambda: "")

    async def _why_agent_ended(self, connection: SSHClientConnection) -> str:
        """Return why the agent's socket does not answer; nothing if the agent is there."""
        assert self._found is not None
        done = await run(connection, ask(self._directory(self._found)), timeout=COMMAND_TIMEOUT)
        if done.code == 0:
            return ""
        self._words = done.out.strip()[-_LAST_WORDS:]
        self._left = connection if done.code == 4 else None
        return "its agent ended" if done.code == 4 else "its agent ended, and the node's directory is gone"

    def _directory(self, found: probe.Findings) -> str:
        return f"{found.cache}/nodes/{self._name}"

    def _runtime(self, found: probe.Findings) -> str:
        return f"{found.cache}/runtime/{runtime_bundle().digest}"
