"""Keep an open pool recorded, so that another client goes on with it if this one dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skyward.blocking import in_thread
from skyward.engine.calls.call import new_id
from skyward.engine.instances.call_journal import forget_calls, write_calls
from skyward.engine.instances.detached_records import DETACHED, FED, STREAM, LeftCall
from skyward.engine.instances.detachment import Detachment
from skyward.engine.instances.linger import Linger
from skyward.engine.instances.owner_lock import acquire, release
from skyward.engine.instances.provider_recipe import ProviderRecipe
from skyward.engine.nodes.host import LeavableHost
from skyward.engine.pool.left_nodes import terms
from skyward.errors import ConfigError, SkywardError
from skyward.plan.instances.billing import ENDING_S
from skyward.plan.instances.detached_pool import check_detach

if TYPE_CHECKING:
    from skyward.engine.calls.call import Call
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.running import Running

__all__ = ["LeaseRecord", "check_lease"]

_log = logging.getLogger(__name__)

LOOK = 0.5
"""Seconds between two looks at least."""

AGAIN = 30.0
"""Seconds after which what is known of the nodes is written once more, with what the budget leaves by then."""

SHARE = 100.0
"""Seconds of rest for each that a snapshot of the calls takes: it costs a hundredth of a processor at most."""

ASKING = 20.0
"""Seconds that a node has to take its lease."""

_UNSENT = "it waited at the client that died, and no node had it"


def check_lease(running: Running) -> None:
    """
    Check that a pool may go on without its client, if it is to.

    Args:
        running: The pool, before anything is rented.

    Raises:
        ConfigError: If nothing would end it, or it could not be attached.
    """
    if running.options.lease is None:
        return
    facts, spec = running.provisioning.facts, running.spec
    check_detach(facts, pool=running.name, ttl=spec.ttl, volumes=spec.volumes, local=facts.name == "local")
    if secrets := ProviderRecipe.of(spec.provider).secrets:
        raise ConfigError(
            f"Pool {running.name!r} cannot have a lease: {secrets[0]}= of its provider is a secret, which has no place "
            "on this computer's disk.",
            pool=running.name,
            hint="Leave it to an environment variable or the provider's own file.",
        )


class LeaseRecord:
    """
    Write down the nodes and calls of a pool with a lease, as they come and go; lives in the engine's loop.

    Args:
        running: The pool.
    """

    def __init__(self, running: Running) -> None:
        self._running = running
        self._pool_id = running.provisioning.pool_id
        self._task: asyncio.Task[None] | None = None
        self._known: tuple[object, ...] = ()
        self._written_at = 0.0
        self._leased: dict[NodeShell, float] = {}
        self._calls: list[tuple[int, int | None]] = []
        self._trouble = ""

    async def begin(self) -> None:
        """
        Write down what there is, and go on with that.

        Raises:
            ConfigError: If another client has the pool.
        """
        running = self._running
        if running.options.lease is None:
            return
        # One that was attached has it already.
        if running.inherited.places == () and not await in_thread(acquire, self._pool_id):
            raise ConfigError(f"Another client has the pool {running.name!r} ({self._pool_id}).", pool=running.name)
        await self._write()
        running.inherited.recorded = not self._trouble
        _log.info(
            "lease.begun pool=%s: if this program dies, go on with it: sky attach %s", running.name, self._pool_id
        )
        self._task = running.engine.loop.create_task(self._run())

    async def pause(self) -> None:
        """Write nothing more: the pool is about to be left, and what is written then holds."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None

    def go_on(self) -> None:
        """Continue after `pause`, because the pool was not left."""
        if self._running.options.lease is not None:
            self._known = ()
            self._task = self._running.engine.loop.create_task(self._run())

    async def close(self, *, left: bool) -> None:
        """
        Remove what was written, and release the pool.

        Args:
            left: Whether another client is to go on with it, by a record of its own.
        """
        await self.pause()
        if self._running.options.lease is not None:
            if not left:
                await in_thread(DETACHED.forget, (self._pool_id,))
            await in_thread(forget_calls, self._pool_id)
        release(self._pool_id, over=not left)

    async def _run(self) -> None:
        while True:
            began = time.perf_counter()
            await self._write()
            await asyncio.sleep(max(LOOK, SHARE * self._spent, AGAIN if self._trouble else 0.0))
            _log.debug("lease.recorded pool=%s seconds=%.6f", self._pool_id, time.perf_counter() - began)

    _spent = 0.0

    async def _write(self) -> None:
        try:
            await self._write_nodes()
            await self._write_calls()
        except (OSError, SkywardError) as error:
            await self._withdraw(str(error))
        else:
            self._trouble = ""

    async def _write_nodes(self) -> None:
        """Write down the nodes where they are others than before, and only then have them go on without a client."""
        running = self._running
        shells = [shell for shell in running.ready_shells() if isinstance(shell.host, LeavableHost)]
        shells = [shell for shell in shells if shell.blueprint.cluster.pool_id == self._pool_id]
        known = (running.membership.version, *map(id, shells))
        late = running.engine.loop.time() - self._written_at > AGAIN
        linger = running.provisioning.linger
        if not isinstance(linger, Linger) or not shells or (known == self._known and not late):
            return
        lease = running.options.lease or 0.0
        seconds = linger.granted(shells, lease, spare=1.2 * ENDING_S)
        if not seconds:
            raise ConfigError(f"The budget or the timeout of the pool {running.name!r} leaves nothing for its lease.")
        record = Detachment(linger, terms(running, running.name, seconds + AGAIN), shells)
        await record.record_owned()
        self._known, self._written_at = known, running.engine.loop.time()
        # What a lease says is soon less where a budget limits it, and otherwise stays as it is.
        changed = [shell for shell in shells if abs(self._leased.get(shell, 0.0) - seconds) > 0.02 * seconds]
        await self._lease(changed, seconds)

    async def _lease(self, shells: Sequence[NodeShell], seconds: float) -> None:
        async def ask(shell: NodeShell) -> None:
            async with asyncio.timeout(ASKING):
                failed = (await shell.ask({"lease": seconds})).get("failed")
            if failed:
                raise OSError(str(failed))
            self._leased[shell] = seconds

        for shell, failed in zip(shells, await asyncio.gather(*map(ask, shells), return_exceptions=True), strict=True):
            if isinstance(failed, Exception):
                # It ends after ttl, as any other does.
                _log.warning("%s has no lease: %s: %s", shell.where, type(failed).__name__, failed)
        self._leased = {shell: each for shell, each in self._leased.items() if shell in self._running.instances.shells}

    async def _write_calls(self) -> None:
        began = time.perf_counter()
        calls = self._open_calls()
        now = [(call.id, node) for node, call in calls]
        took = time.perf_counter() - began
        if now != self._calls:
            # Written as they are now: the thread reads nothing that changes.
            began = time.perf_counter()
            await in_thread(write_calls, self._pool_id, calls, new_id())
            self._calls = now
            took += time.perf_counter() - began
        self._spent = took

    def _open_calls(self) -> list[tuple[int | None, LeftCall]]:
        running = self._running
        found: list[tuple[int | None, LeftCall]] = [
            (shell.index, call) for shell in running.ready_shells() for call in running.inherited.open_on(shell.index)
        ]
        for call in running.dispatch.calls:
            name, lost = call.function.name, _why_lost(call)
            left = LeftCall(id=call.id, function=name, lane=call.lane, timeout=call.timeout, lost=lost)
            found.append((call.on, left))
        return found

    async def _withdraw(self, why: str) -> None:
        """Set the nodes to end after `ttl`, because another client would not find them, and say so once."""
        leased = list(self._leased)
        self._leased.clear()
        self._known = ()
        with contextlib.suppress(Exception):
            await asyncio.wait_for(asyncio.gather(*(shell.ask({"lease": 0}) for shell in leased)), ASKING)
        if why != self._trouble:
            self._trouble = why
            self._running.reporting.error(
                f"The nodes of pool {self._running.name!r} end {self._running.spec.ttl:g} s after this program does, "
                f"with their calls: the pool cannot be written down: {why}",
                fatal=False,
            )


def _why_lost(call: Call) -> str:
    """Return why a call can have no result without this client; nothing if it can."""
    if call.streams:
        return STREAM
    if call.feeder is not None:
        return FED
    return "" if call.on is not None else _UNSENT
