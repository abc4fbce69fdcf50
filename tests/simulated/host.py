"""A host in memory: the engine's `Host`, an agent and its workers as a few objects in the client's own loop."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import time
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any

from skyward.engine.instances.recipe import Recipe
from skyward.engine.nodes.host import OnClosed, OnFrame, Prepared
from skyward.errors import ProvisionError, TransportError
from skyward.link.failure import dump_failure
from skyward.link.frames import VERSION, Frame, Kind, Parser, decode_json, encode, encode_json
from skyward.link.joining import Stream
from skyward.link.messages import CALL, CANCEL, FUNCTION, RECALL, RESULT, TASK, Status
from skyward.link.payload import decode, load
from skyward.link.payload_making import dump
from skyward.node.agent.fds import close_all

here: ContextVar[str] = ContextVar("here")
"""The id of the machine that a call runs on."""


class SimulatedMachine:
    """
    Be a machine that a cloud has rented out, and what an address leads to.

    Args:
        name: Its id.
        prepares: Seconds that it takes to be made ready.
        starts: Seconds that its workers take to come up then.
        unreachable: Whether no login gets into it.
        dies: Whether it goes away, unknown to its cloud, while it is made ready.
        ends_itself: Whether it does so when it is asked to; called then.
    """

    def __init__(
        self,
        name: str,
        *,
        prepares: float = 5.0,
        starts: float = 1.0,
        unreachable: bool = False,
        dies: bool = False,
        ends_itself: Callable[[], None] | None = None,
    ) -> None:
        self.id = name
        self.prepares = prepares
        self.starts = starts
        self.unreachable = unreachable
        self.dies = dies
        self.ends_itself = ends_itself
        self.redials = 5.0
        self.frozen = self.cut_off = False
        self.unmount_fails = ""
        self.off = False
        self.hosts: list[SimulatedHost] = []

    def make_host(self, mark: str, recipe: Recipe) -> SimulatedHost:
        """Return the host that this machine is."""
        self.hosts.append(SimulatedHost(self, recipe))
        return self.hosts[-1]

    @property
    def silent(self) -> bool:
        """Tell whether nothing comes through to the agent or from it."""
        return self.frozen or self.cut_off

    def fall_silent(self, *, cut_off: bool = False) -> None:
        """Let nothing through: the agent is frozen, or the whole machine is cut off."""
        self.frozen, self.cut_off = True, cut_off

    def be_heard(self) -> None:
        """Let through what has waited, and what comes."""
        self.frozen = self.cut_off = False
        for host in self.hosts:
            if host.agent is not None:
                host.agent.go_on()

    def switch_off(self, why: str = "the connection was cut") -> None:
        """Be gone, with all that runs here."""
        if not self.off:
            self.off = True
            for host in self.hosts:
                host.cut(TransportError(why))

    def tell(self, kind: Kind, value: Any) -> None:
        """Have the agent say something of itself, such as that the machine is taken back."""
        for host in self.hosts:
            if host.agent is not None:
                host.agent.say(encode_json(kind, value))


class SimulatedHost:
    """
    Implement `Host` for a machine in memory.

    Args:
        machine: The machine.
        recipe: What becomes of it.
    """

    def __init__(self, machine: SimulatedMachine, recipe: Recipe) -> None:
        self.machine = machine
        self.agent: Agent | None = None
        self.flushed = 0
        self.unmounted: tuple[str, ...] = ()
        self.closed = False
        self.patience: float | None = None
        self._recipe = recipe

    async def prepare(self) -> Prepared:
        """Take the time that it takes; a machine that no login gets into is dialled until time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._recipe.timeout
        while self.machine.unreachable or self.machine.off:
            self._recipe.unreachable()
            if loop.time() >= deadline:
                raise ProvisionError(f"{self.machine.id} did not answer within {self._recipe.timeout:g} s.")
            await asyncio.sleep(self.machine.redials)
        if self.machine.dies:
            await asyncio.sleep(self.machine.prepares / 2)
            self.machine.off = True
            self._recipe.unreachable()
            raise ProvisionError(f"{self.machine.id} went away while it was made ready.")
        await asyncio.sleep(self.machine.prepares)
        return Prepared(python="python", env={})

    async def open(self, on_frame: OnFrame, on_closed: OnClosed) -> Agent:
        """Start the agent."""
        if self.machine.off:
            raise TransportError(f"{self.machine.id} cannot be reached.")
        self.agent = Agent(self.machine, on_frame, on_closed)
        return self.agent

    async def dial_port(self, port: int) -> Stream:
        """Tell that nothing listens."""
        raise ConnectionRefusedError(f"Nobody listens at port {port} of {self.machine.id}.")

    async def dial_socket(self, path: str) -> Stream:
        """Tell that nothing listens."""
        raise ConnectionRefusedError(f"Nobody listens at {path} of {self.machine.id}.")

    async def flush(self) -> None:
        """Count it."""
        self.flushed += 1

    async def answers(self) -> bool:
        """Say whether the machine is there and can be reached."""
        return not (self.machine.off or self.machine.unreachable or self.machine.cut_off)

    async def unmount(self, folders: Sequence[str]) -> str:
        """Record which disks it is asked for."""
        self.unmounted = tuple(folders)
        return self.machine.unmount_fails

    def last_words(self) -> str:
        """Say nothing."""
        return ""

    def leaving(self, patience: float) -> None:
        """Nothing is prepared."""

    async def end(self, patience: float) -> None:
        """End the agent."""
        self.patience = patience
        if self.agent is not None:
            self.agent.close()

    async def end_machine(self) -> bool:
        """Have the machine end itself, if it does."""
        if self.machine.ends_itself is None or self.machine.off:
            return False
        self.machine.ends_itself()
        return True

    async def close(self) -> None:
        """Take note."""
        self.closed = True

    def cut(self, error: Exception) -> None:
        """Lose the link."""
        if self.agent is not None:
            self.agent.close(error)


class Agent:
    """
    Be the link to an agent and the agent itself: run each call on its lane, as many side by side as it has slots.

    A call that returns a coroutine takes as long as that does, by the loop's clock.

    Args:
        machine: Where it lives.
        on_frame: Takes what it sends.
        on_closed: Told once when the link is over.
    """

    def __init__(self, machine: SimulatedMachine, on_frame: OnFrame, on_closed: OnClosed) -> None:
        self.closed = False
        self.on_drained: Callable[[], None] | None = None
        self.config: dict[str, Any] = {}
        self._machine = machine
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._heard_at = 0.0
        self._unheard: list[tuple[Frame, tuple[int, ...]]] = []
        self._unsaid: list[Frame] = []
        self._said = Parser()
        self._heard = Parser()
        self._functions: dict[bytes, Any] = {}
        self._lanes: dict[int, asyncio.Semaphore] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._begun: set[int] = set()

    @property
    def heard(self) -> int:
        """Count what has come from the agent: something each moment, until the machine is frozen or cut off."""
        if not self._machine.silent:
            self._heard_at = self._loop.time()
        return int(1000 * self._heard_at)

    def beat(self) -> None:
        """Do nothing: it is the client that looks."""

    @property
    def connected(self) -> bool:
        """Tell whether the machine is there."""
        return not self.closed

    @property
    def backlog(self) -> int:
        """Count nothing: all that is sent arrives."""
        return 0

    @property
    def queued(self) -> int:
        """Count nothing either."""
        return 0

    def flush(self) -> None:
        """Do nothing."""

    def send(self, frame: bytes, fds: Any = (), hold: object = None, receipt: Any = None) -> None:
        """Hear a frame of the client's, a moment later."""
        if receipt is not None:
            self._loop.call_soon(receipt)
        for heard in self._heard.feed(frame):
            # Of what is large, only calls and functions are looked at.
            ours = tuple(map(os.dup, fds)) if heard.kind in (Kind.FUNCTION, Kind.TASK) else ()
            self._loop.call_soon(self._hear, heard, ours)

    def end(self) -> None:
        """Close."""
        self.close()

    def close(self, error: Exception | None = None) -> None:
        """End the link, and all that runs."""
        if self.closed:
            return
        self.closed = True
        for task in self._calls.values():
            task.cancel()
        self._loop.call_soon(self._on_closed, error)

    def say(self, frame: bytes) -> None:
        """Send a frame to the client, a moment later."""
        for said in self._said.feed(frame):
            self._loop.call_soon(self._arrive, said)

    def go_on(self) -> None:
        """Take and send what has waited while nothing came through."""
        unheard, self._unheard = self._unheard, []
        unsaid, self._unsaid = self._unsaid, []
        for frame, fds in unheard:
            self._hear(frame, fds)
        for frame in unsaid:
            self._arrive(frame)

    def _arrive(self, frame: Frame) -> None:
        if self._machine.silent:
            self._unsaid.append(frame)
        elif not self.closed:
            self._on_frame(frame, ())

    def _hear(self, frame: Frame, fds: tuple[int, ...]) -> None:
        if self.closed:
            close_all(fds)
            return
        if self._machine.silent:
            self._unheard.append((frame, fds))
            return
        match frame.kind:
            case Kind.HELLO:
                facts = {"version": VERSION, "hostname": self._machine.id, "port": 1, "now": time.time()}
                self.say(encode_json(Kind.WELCOME, facts))
            case Kind.START:
                length = int.from_bytes(frame.body[:4], "little")
                self.config = json.loads(frame.body[4 : 4 + length])
                ready = encode_json(Kind.READY, {"lanes": len(self.config["lanes"])})
                self._loop.call_later(self._machine.starts, self.say, ready)
            case Kind.STOP:
                self.say(encode(Kind.STOPPED))
            case Kind.REFRESH:
                self.say(encode(Kind.REFRESHED))
            case Kind.ASK:
                self._answer(decode_json(frame.body))
            case Kind.FUNCTION:
                digest, _ = FUNCTION.unpack_from(frame.body)
                self._functions[digest] = load(decode(frame.body, FUNCTION.size, fds))
            case Kind.TASK:
                self._task(frame, fds)
            case Kind.CANCEL:
                call, _ = CANCEL.unpack(frame.body)
                if call in self._calls:
                    self._calls[call].cancel()
            case Kind.RECALL:
                waiting = [call for call in self._calls if call not in self._begun][RECALL.unpack(frame.body)[0] :]
                for call in waiting:
                    self._calls.pop(call).cancel()
                self.say(encode(Kind.RECALLED, b"".join(map(CALL.pack, waiting)), lane=frame.lane))

    def _answer(self, question: dict[str, Any]) -> None:
        """Find a port, and reach all others."""
        found = {"port": 1} if "listen" in question else {"unreached": [""] * len(question.get("reach", ()))}
        self.say(encode_json(Kind.ANSWER, {"number": question["number"], **found}))

    def _task(self, frame: Frame, fds: tuple[int, ...]) -> None:
        call, *_, digest = TASK.unpack_from(frame.body)
        args, kwargs = load(decode(frame.body, TASK.size, fds))
        lane = self._lanes.setdefault(frame.lane, asyncio.Semaphore(self.config["slots"]))
        work = self._run(call, frame.lane, lane, self._functions[digest], args, kwargs)
        self._calls[call] = self._loop.create_task(work)

    async def _run(
        self, call: int, number: int, lane: asyncio.Semaphore, function: Any, args: Any, kwargs: Any
    ) -> None:
        here.set(self._machine.id)
        try:
            async with lane:
                self._begun.add(call)
                began = self._loop.time()
                value = getattr(function, "local", function)(*args, **kwargs)
                if inspect.isawaitable(value):
                    value = await value
                status, body = Status.OK, dump(value).encode()
        except asyncio.CancelledError:
            if call not in self._calls:
                # Given back before it began.
                return
            status, body = Status.CANCELLED, b""
        except Exception as error:
            status, body = Status.RAISED, dump_failure(error)
        self._calls.pop(call, None)
        seconds = self._loop.time() - began if call in self._begun else 0.0
        self.say(encode(Kind.RESULT, RESULT.pack(call, status, seconds, 0.0) + body, lane=number))
