"""One node of an open pool: its instance, its agent, its link, its frames."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve

from skyward.blocking import in_thread
from skyward.engine.instances.blueprint import ssh_port
from skyward.engine.nodes.agent_questions import AgentQuestions
from skyward.engine.nodes.inflow import Inflow
from skyward.engine.nodes.node_facts import network_of
from skyward.engine.nodes.node_link import NodeLink
from skyward.engine.nodes.node_listener import NodeListener
from skyward.engine.pool.event_loop import EngineLoop
from skyward.errors import PluginError, ProtocolError, ProvisionError, SkywardError
from skyward.link.channel import SENSELESS, Link
from skyward.link.emitted import decode_event
from skyward.link.frames import VERSION, Frame, Kind, decode_json
from skyward.link.messages import decode_lines
from skyward.link.windows import Life
from skyward.model.instances.machine import InstanceState
from skyward.model.spec.trust_setting import DATA, Data
from skyward.node.agent.fds import close_all
from skyward.plan.instances.clocks import ahead

if TYPE_CHECKING:
    from skyward.engine.instances.blueprint import Blueprint
    from skyward.engine.instances.rented import Rented
    from skyward.engine.nodes.host import Host
    from skyward.link.payload import Payload
    from skyward.model.events.loss_event import LossCause
    from skyward.model.instances.instance import InstanceInfo
    from skyward.model.instances.machine import Instance

T = TypeVar("T")


class NodeShell:
    """
    Hold what there is of one node, from its launch to its end.

    Its `host` says how its agent is started and ended, and is set once its machine runs.

    Args:
        engine: The loop it lives in.
        index: Its place in the pool.
        rented: The machine under it, and what it was rented with.
        info: What events and messages report of it.
    """

    def __init__(self, engine: EngineLoop, index: int, rented: Rented, info: InstanceInfo) -> None:
        instance = rented.instance
        self.index = index
        self.rented = rented
        self.instance = instance
        self.info = info
        self.host: Host | None = None
        self.where = f"node {index} ({instance.provider} {instance.id})"
        self.link: NodeLink | None = None
        self.lost_by: LossCause = "agent"
        self.line: Link | None = None
        self.leaving = self.lingers = False
        self.seat = index
        self.notice: dict[str, Any] | None = None
        self.ahead = 0.0
        self.trust: Data | None = None
        self._greeted_at = 0.0
        self._engine = engine
        self._runs: asyncio.Future[None] = engine.loop.create_future()
        self._ready: asyncio.Future[None] = engine.loop.create_future()
        self._stopped: asyncio.Future[None] = engine.loop.create_future()
        self._refreshed: asyncio.Future[None] | None = None
        self._refusal: bytes | None = None
        self._questions = AgentQuestions(self.where, index)
        self._life = Life()
        self._inflow = Inflow(self._take_output, self._give_leave, lambda: self.listener.behind(self))
        self._unasked: set[int] = set()
        self.listener: NodeListener[NodeShell] = NodeListener()
        self.on_busy: Callable[[NodeShell, str], None] = lambda *_: None
        self.on_unreachable: Callable[[], None] = lambda: None
        self.on_shared: Callable[[Frame | None], None] = lambda _: None

        if instance.state is InstanceState.RUNNING and instance.address is not None:
            self._runs.set_result(None)

    @property
    def blueprint(self) -> Blueprint:
        """Return what is made of its machine."""
        return self.rented.blueprint

    @property
    def heard(self) -> int:
        """Count how often anything has come from its agent."""
        return self.line.heard if self.line is not None else 0

    @property
    def was_ready(self) -> bool:
        """Return whether its workers have taken calls, now or before."""
        return self._ready.done() and self._ready.exception() is None

    async def running(self) -> None:
        """
        Wait until the machine runs, as `began` or `never` says.

        Raises:
            SkywardError: If it never will.
        """
        await asyncio.shield(self._runs)

    def began(self, instance: Instance) -> None:
        """
        Record that the machine runs.

        Args:
            instance: The machine as the provider lists it now.
        """
        # What a list leaves out is still as it was said at the launch.
        self.instance = evolve(
            self.instance,
            state=instance.state,
            address=instance.address,
            ip=instance.ip or self.instance.ip,
            private_ip=instance.private_ip or self.instance.private_ip,
        )
        self.info = evolve(
            self.info,
            ip=self.instance.ip,
            private_ip=self.instance.private_ip,
            ssh_port=ssh_port(self.instance.address) or self.info.ssh_port,
        )
        self._settle(self._runs, None)

    def never(self, error: SkywardError) -> None:
        """Record that the machine will not run."""
        self._settle(self._runs, error)

    def gone(self, why: str, cause: LossCause = "instance") -> None:
        """Record that the machine is gone, or counts so, whatever its link says."""
        self.lost_by = cause
        error = ProvisionError(f"{self.where} was lost: {why}.", node=self.index)
        self._settle(self._runs, error)
        if not self._ready.done():
            self._settle(self._ready, error)
        else:
            self._lost(why)

    async def while_there(self, work: Coroutine[Any, Any, T]) -> T:
        """
        Wait for something that the machine is needed for; it is broken off when the machine is lost or terminated.

        Args:
            work: What is done.

        Raises:
            SkywardError: If the machine is gone.
        """
        task = asyncio.ensure_future(work)
        either: list[asyncio.Future[Any]] = [task, self._ready]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self._ready.result()
            return await task
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def connect(self) -> None:
        """Connect to the agent."""
        link = self.line = await self._host.open(self._on_frame, self._on_closed)
        link.on_announced = self._on_announced
        self.link = NodeLink(link, data=self.trust is not None, post=self._engine.post)
        self._greeted_at = time.time()
        self.link.greet(VERSION, (self.info.private_ip, self.info.ip))

    def start(self, config: dict[str, Any], plugins_pickle: bytes, files: Iterable[Payload]) -> None:
        """
        Order the agent to start the workers.

        Args:
            config: What node it is of.
            plugins_pickle: The plugins, for the workers.
            files: The user's modules; they are there before the workers start, whose plugins may import them.
        """
        if self.link is None:
            return
        for payload in files:
            self.link.send_files(payload)
        self.link.start(config, plugins_pickle)

    async def ready(self, timeout: float) -> None:
        """
        Wait until every worker of the node is up.

        Raises:
            ProvisionError: If that does not happen in time, or the node says that it won't.
        """
        try:
            await asyncio.wait_for(asyncio.shield(self._ready), timeout)
        except TimeoutError:
            raise ProvisionError(
                f"The workers of {self.where} were not ready within {timeout:g} s. {self._host.last_words()}",
                node=self.index,
                hint="Raise bootstrap_timeout if its plugins need longer.",
            ) from None
        if self._refusal is not None:
            # In a thread, because it reads what a plugin raised.
            raise await in_thread(_plugin_failure, self._refusal, self.where)

    def came_back(self) -> None:
        """Record that its workers take calls, as they did for the client before."""
        self._settle(self._ready, None)

    async def refresh(self) -> None:
        """Restart the workers, and wait until they are up."""
        if self.link is not None:
            self._refreshed = self._engine.loop.create_future()
            self.link.refresh()
            await self._refreshed

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """
        Ask the agent something.

        Args:
            question: What `node/agent/neighbours.py` answers.

        Raises:
            ProvisionError: If the node is lost first.
        """
        return await self._questions.ask(None if self._stopped.done() else self.link, question)

    async def end(self, patience: float) -> None:
        """
        Stop the node in good order, and then end what is left of it; its machine stays.

        Args:
            patience: Seconds it has to leave by itself.
        """
        self.leaving = True
        terminated = ProvisionError(f"{self.where} is being terminated.", node=self.index)
        self._settle(self._runs, terminated)
        self._settle(self._ready, terminated)
        if self.link is not None and patience:
            self.link.stop(patience)
            self._host.leaving(patience)
            await asyncio.wait([self._stopped], timeout=patience + 1.0)
        if self.link is not None:
            self.link.close()
        if self.host is not None:
            await self.host.end(2.0 if patience else 0.5)

    async def let_go(self) -> None:
        """Close the connection to its machine."""
        if self.host is not None:
            await self.host.close()

    @property
    def _host(self) -> Host:
        if self.host is None:
            raise ProvisionError(f"{self.where} has no machine that runs.", node=self.index)
        return self.host

    def abort(self) -> None:
        """Stop waiting for the node to leave in good order."""
        self.post(self._settle, self._stopped, None)
        if self.link is not None:
            self.link.close()

    def post(self, do: Callable[..., None], *args: Any) -> None:
        """Post a call to the engine's loop."""
        self._engine.post(do, *args)

    def _on_frame(self, frame: Frame, fds: tuple[int, ...]) -> None:
        match frame.kind:
            case Kind.RESULT | Kind.RECALLED | Kind.ITEM | Kind.CREDIT | Kind.BLOB:
                self.listener.call_frame(self, frame, fds)
            case Kind.KEEP:
                self.listener.keeps(self, frame, fds)
            case Kind.LOG | Kind.EMIT:
                # Asked when it comes: it may wait until its call is long over.
                if frame.kind == Kind.EMIT and not self.listener.emitting(self, frame):
                    self._unasked.add(id(frame))
                self._inflow.take(frame, fds)
            case _:
                self._life.arrived(frame)
                self._on_fact(frame, fds)

    def _on_announced(self, frame: Frame) -> bool:
        """Return whether buffers are wanted that the node is about to send."""
        if frame.kind in (Kind.RESULT, Kind.ITEM, Kind.BLOB):
            return self.listener.call_announced(self, frame)
        if frame.kind == Kind.KEEP:
            return self.listener.keeps_announced(self, frame)
        if frame.kind != Kind.EMIT:
            raise ProtocolError(f"A node announced buffers of a {Kind(frame.kind).name} frame, which has none.")
        self._inflow.announced(frame)
        return True

    def _take_output(self, frame: Frame, fds: tuple[int, ...]) -> None:
        if frame.kind == Kind.LOG:
            self.listener.lines(self, *decode_lines(frame.body))
        elif id(frame) in self._unasked:
            self._unasked.discard(id(frame))
            close_all(fds)
        else:
            self.listener.emitted(self, decode_event(frame.body, fds, self.trust))

    def _give_leave(self, size: int) -> None:
        if self.link is not None:
            self.link.acknowledge_log(size)

    def go_on(self) -> None:
        """Take what was buffered while handlers were behind."""
        try:
            self._inflow.go_on()
        except (SkywardError, *SENSELESS) as error:
            if self.link is not None:
                self.link.refuse(ProtocolError(f"The node sent an invalid message: {error}"))

    def _on_fact(self, frame: Frame, fds: tuple[int, ...]) -> None:
        match frame.kind:
            case Kind.BEAT:
                return
            case Kind.READY:
                self._settle(self._ready, None)
            case Kind.REFRESHED:
                self._settle(self._refreshed, None)
            case Kind.FAILED:
                if not self._ready.done():
                    self._refusal = frame.body
                    self._ready.set_result(None)
            case Kind.WORKER:
                self._failed(decode_json(frame.body))
            case Kind.STOPPED:
                self._settle(self._stopped, None)
            case Kind.WELCOME:
                self._welcomed(decode_json(frame.body))
            case Kind.DROP if self.link is not None:
                self.link.forgot(frame.body)
            case Kind.NOTICE:
                self.listener.noticed(self, decode_json(frame.body))
            case Kind.SERVING | Kind.FETCHED:
                self.on_shared(frame)
            case Kind.METRIC:
                self.listener.measured(self, decode_json(frame.body))
            case Kind.PEERS:
                self.listener.asked(self, frame.body)
            case Kind.STORE:
                self.listener.store_asked(self, frame.body)
            case Kind.ANSWER:
                self._questions.answered(decode_json(frame.body))
            case _:
                close_all(fds)
                raise ProtocolError(f"A node sent a {Kind(frame.kind).name} frame, which only clients send.")

    def _welcomed(self, welcome: dict[str, Any]) -> None:
        """Take over what only the node itself knows."""
        self.info = evolve(
            self.info,
            hostname=str(welcome["hostname"]),
            head_port=int(welcome["port"]),
            network=network_of(welcome.get("network") or {}),
        )
        self.ahead = ahead(self._greeted_at, welcome.get("now"), time.time())
        if self.link is not None:
            self.link.buffers.keeps(welcome.get("keeps"))

    def _failed(self, facts: dict[str, Any]) -> None:
        output = "".join(f"\n  | {line}" for line in facts.get("output", ())[-10:])
        ended = ""
        if facts.get("signal") or facts.get("exit_code") is not None:
            ended = f" ({facts.get('signal') or 'exit code ' + str(facts['exit_code'])})"
        message = f"{self.where} cannot continue: {facts['message']}{ended}.{output}"
        if self._ready.done():
            self._lost(message)
        else:
            self._settle(self._ready, ProvisionError(message, node=self.index))

    def _on_closed(self, error: Exception | None) -> None:
        with contextlib.suppress(SkywardError, *SENSELESS):
            self._inflow.close()
        self._settle(self._stopped, None)
        self.on_shared(None)
        why = str(error) if error else "its agent ended"
        if not self._ready.done():
            self._settle(self._ready, ProvisionError(f"{self.where} was lost: {why}. {self._host.last_words()}"))
        else:
            self._lost(f"{why} {self._host.last_words()}".strip())
        self._settle(self._refreshed, None)
        self._questions.close()

    def _lost(self, why: str) -> None:
        # A node that refused to start is not lost: `ready` raises why.
        if not self.leaving and self._refusal is None:
            self.leaving = True
            self.listener.lost(self, why)

    @staticmethod
    def _settle(future: asyncio.Future[Any] | None, error: Exception | None) -> None:
        if future is None or future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
            future.exception()


def _plugin_failure(body: bytes, where: str) -> SkywardError:
    from skyward.link.failure import load_failure

    # No call was made yet, so no pickle is opened as code, not even on the user's own machine.
    error = load_failure(body, note=f"raised while the workers of {where} started", trust=DATA)
    if isinstance(error, PluginError):
        return error
    failure = ProvisionError(f"The workers of {where} could not start: {type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure
