"""Leave the nodes of a pool with the calls that they have, for another client to go on with."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from skyward.blocking import in_thread
from skyward.engine.calls.call import new_id
from skyward.engine.instances.detached_records import (
    DETACHED,
    DetachedNode,
    DetachedPool,
    KeptAnswer,
    LeftCall,
    forget_detached,
)
from skyward.engine.instances.kept_answers import forget_answers, keep_answers
from skyward.engine.instances.lingering_key import made_of
from skyward.engine.instances.lingering_records import LeftMachine
from skyward.engine.instances.provider_recipe import ProviderRecipe
from skyward.engine.nodes.host import LeavableHost
from skyward.engine.source.bundle import runtime_bundle
from skyward.errors import ConfigError, ProvisionError
from skyward.link.wire import Wire
from skyward.model.instances.machine import SSHAddress
from skyward.plan.instances.detached_pool import Detached
from skyward.plan.instances.instance_events import Lingers

if TYPE_CHECKING:
    from skyward.engine.instances.linger import Linger
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.model.spec.options import Options
    from skyward.model.spec.spec import Spec

__all__ = ["Detachment", "DetachTerms"]

_log = logging.getLogger(__name__)

PARKING = 20.0
"""Seconds that a node has to answer that it waits for another client."""

DRAINING = 120.0
"""Seconds without progress after which a node counts as one that does not take its calls."""

_LOOK = 0.01


@frozen(kw_only=True)
class DetachTerms:
    """
    Say what a detached pool is, apart from its nodes.

    Args:
        name: What it is attached by.
        spec: What it was made of.
        options: How it behaves.
        lease: Seconds until its machines end.
        members: The latest version of the members.
        lost: Calls that were lost before.
        idle: Seconds after which a node ends that has nothing to do; None for the end of the lease.
    """

    name: str
    spec: Spec
    options: Options
    lease: float
    members: int
    lost: tuple[LeftCall, ...] = ()
    idle: float | None = None


class Detachment:
    """
    Leave nodes to another client; lives in the engine's loop.

    Args:
        linger: What leaves the machines of this pool without their nodes, and knows them.
        left: What the pool is.
        nodes: The nodes that are left.
    """

    def __init__(self, linger: Linger, left: DetachTerms, nodes: Sequence[NodeShell]) -> None:
        self._linger = linger
        self._left = left
        self._nodes = list(nodes)
        self._keys: dict[NodeShell, str] = {}
        self._failed: dict[NodeShell, str] = {}
        self.wanted = True

    @property
    def any(self) -> bool:
        """Return whether a node is left."""
        return bool(self._keys)

    @property
    def stays(self) -> bool:
        """Return whether a node is left: each machine ends by itself, and by nothing else."""
        return self.any

    async def prepare(self, calls: Mapping[NodeShell, Sequence[LeftCall]], answers: Sequence[KeptAnswer] = ()) -> None:
        """
        Write down what there is, so that what cannot be written is found before anything is changed.

        Args:
            calls: The calls by their nodes, as of now.
            answers: Results of some of them, that have arrived here and were not used.

        Raises:
            ConfigError: If a part of it cannot be pickled, or there is no directory for it.
            OSError: If it is not on the disk.
        """
        try:
            await in_thread(self._write, *self._record(calls), answers)
        except (OSError, ConfigError):
            raise
        except Exception as error:
            raise self._unwritable(error) from error

    async def park(self) -> None:
        """
        Order each node to wait for another client, once it has all its calls.

        Raises:
            ProvisionError: If none does.
        """
        ended = await asyncio.gather(*map(self._park, self._nodes), return_exceptions=True)
        for shell, outcome in zip(self._nodes, ended, strict=True):
            if isinstance(outcome, str):
                self._keys[shell] = outcome
            elif isinstance(outcome, Exception):
                self._failed[shell] = f"it could not be left: {type(outcome).__name__}: {outcome}"
                _log.warning("%s is not left, and is terminated: %s", shell.where, outcome)
            else:
                raise outcome
        if not self._keys:
            raise ProvisionError(f"Pool {self._left.name!r} could not be detached: {'; '.join(self._failed.values())}.")

    async def return_claimed(
        self, calls: Mapping[NodeShell, Sequence[LeftCall]], answers: Sequence[KeptAnswer]
    ) -> None:
        """
        Leave nodes that were claimed as they were: nothing that they have was asked for.

        One that does not answer is left to its watchdog.

        Args:
            calls: The calls by their nodes.
            answers: Results of some of them, that were here before.

        Raises:
            OSError: If it cannot be written down.
        """
        ended = await asyncio.gather(*map(self._return, self._nodes), return_exceptions=True)
        for shell, outcome in zip(self._nodes, ended, strict=True):
            self._keys[shell] = outcome if isinstance(outcome, str) else ""
            if isinstance(outcome, BaseException):
                _log.warning("%s could not be returned: %s: %s", shell.where, type(outcome).__name__, outcome)
        await in_thread(self._write, *self._record(calls), answers)

    async def record_owned(self) -> None:
        """
        Write down the nodes as those of a client that has not left them, for another one once it is dead.

        Raises:
            ConfigError: If a part of it cannot be pickled, or there is no directory for it.
            OSError: If it is not on the disk.
        """
        for shell in self._nodes:
            if isinstance(shell.host, LeavableHost):
                self._keys[shell] = shell.host.host_key
        about, body = self._record({})
        try:
            await in_thread(DETACHED.write, evolve(about, owned=True), body)
        except (OSError, ConfigError):
            raise
        except Exception as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: Exception) -> ConfigError:
        # What is pickled is the user's own, such as a provider or a plugin.
        return ConfigError(
            f"Pool {self._left.name!r} cannot be detached, because its spec cannot be written down: "
            f"{type(error).__name__}: {error}.",
            pool=self._left.name,
            hint="Make provider= and plugins= of what can be pickled.",
        )

    def cut(self) -> None:
        """End the links of the nodes that are left: what they answer from now on is for the next client."""
        for shell in self._keys:
            if isinstance(shell.line, Wire):
                shell.line.abandon()

    async def finish(self, calls: Mapping[NodeShell, Sequence[LeftCall]], answers: Sequence[KeptAnswer] = ()) -> None:
        """
        Write down what was left.

        Args:
            calls: The calls by their nodes, as they were when the links were cut.
            answers: Results of some of them, that had arrived here by then and were not used.
        """
        await self._linger.write_expiry([shell.instance.id for shell in self._keys], self._left.lease)
        try:
            await in_thread(self._write, *self._record(calls), answers)
        except OSError as error:
            # What was written before names these calls, and some that were answered meanwhile.
            _log.warning("detached.not_written_again pool=%s: %s", self._linger.pool_id, error)

    async def begin(self) -> None:
        """Do nothing: what is left was decided before."""

    async def keep(self, shell: NodeShell, patience: float) -> bool:
        """Leave a node, if it waits for another client."""
        if shell not in self._keys:
            return False
        shell.leaving = shell.lingers = True
        await shell.let_go()
        self._linger.left(Lingers(shell.rented.key))
        return True

    async def write(self, terminate: Callable[[NodeShell], Awaitable[str]]) -> None:
        """Report the machines that are left."""
        for shell in self._keys:
            self._linger.report(shell, self._left.lease)

    async def give_up(self) -> None:
        """Do nothing: nodes with calls go on, and each machine ends by itself."""

    async def withdraw(self) -> None:
        """Remove the record of a pool that is not detached after all."""
        await in_thread(forget_detached, self._linger.pool_id)
        await in_thread(forget_answers, self._linger.pool_id)

    async def _return(self, shell: NodeShell) -> str:
        if not isinstance(shell.host, LeavableHost):
            raise ProvisionError(f"{shell.where} is not reached over SSH.")
        key = await shell.host.detach(self._left.lease)
        if isinstance(shell.line, Wire):
            shell.line.abandon()
        return key

    async def _park(self, shell: NodeShell) -> str:
        host, line = shell.host, shell.line
        if not isinstance(host, LeavableHost) or not isinstance(line, Wire):
            raise ProvisionError(f"{shell.where} is not reached over SSH.")
        await _drained(line)
        async with asyncio.timeout(PARKING):
            await shell.ask({"park": self._left.idle})
        await _drained(line)
        return await host.detach(self._left.lease)

    def _write(self, about: Detached, body: DetachedPool, answers: Sequence[KeptAnswer]) -> None:
        DETACHED.write(about, body)
        keep_answers(about.pool_id, answers)
        if self._linger.rents:
            self._linger.record([node.machine for node in body.nodes], self._left.lease, about.hourly_rate)

    def _record(self, calls: Mapping[NodeShell, Sequence[LeftCall]]) -> tuple[Detached, DetachedPool]:
        linger, left, now = self._linger, self._left, time.time()
        shells = [shell for shell in self._nodes if shell not in self._failed]
        nodes = tuple(self._node(shell, calls.get(shell, ())) for shell in shells)
        failed = [evolve(call, lost=why) for shell, why in self._failed.items() for call in calls.get(shell, ())]
        lost = (*left.lost, *failed)
        about = Detached(
            pool_id=linger.pool_id,
            pool_name=left.name,
            provider=linger.provider_name,
            machines=tuple(node.machine.instance.id for node in nodes),
            calls=sum(len(node.calls) for node in nodes) + len(lost),
            hourly_rate=sum(map(linger.rate, shells)),
            since=now,
            ends_at=now + left.lease,
            runtime=runtime_bundle().digest,
        )
        body = DetachedPool(
            spec=evolve(left.spec, provider=None),
            provider=ProviderRecipe.of(left.spec.provider),
            options=left.options,
            private_key=linger.private_key,
            nodes=nodes,
            shared=linger.shared,
            members=left.members,
            lost=lost,
            last_call=new_id(),
        )
        return about, body

    def _node(self, shell: NodeShell, calls: Sequence[LeftCall]) -> DetachedNode:
        host, address, rented = shell.host, shell.instance.address, shell.rented
        assert isinstance(host, LeavableHost)
        assert isinstance(address, SSHAddress)
        if key := self._keys.get(shell):
            address = evolve(address, host_key=key, known_hosts=None, fingerprints=())
        machine = LeftMachine(
            instance=evolve(shell.instance, address=address, node=shell.index),
            candidate=rented.candidate,
            mark=self._linger.mark(shell),
            token=rented.token,
            rented_at=time.time() - self._linger.age(shell),
            made=made_of(rented.blueprint),
        )
        # A client that did not get so far as to have it cannot know whether its agent has let it in.
        before = rented.resumed.before if rented.resumed is not None else ()
        return DetachedNode(machine=machine, sessions=(host.session, *before), calls=tuple(calls))


async def _drained(line: Wire) -> None:
    """Wait until the other end has all that was sent."""
    loop = asyncio.get_running_loop()
    left, since = line.backlog, loop.time()
    while not line.drained:
        await asyncio.sleep(_LOOK)
        if line.backlog < left:
            left, since = line.backlog, loop.time()
        if line.closed or loop.time() - since > DRAINING:
            raise ProvisionError(f"It has not taken {line.backlog} bytes of its calls for {DRAINING:g} s.")
