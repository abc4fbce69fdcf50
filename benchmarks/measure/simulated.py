"""
A cloud whose machines are a few objects in the client's own loop, to see what the engine itself costs.

A node answers each task after some milliseconds with the same result, opens nothing that it is sent, and tells what
it measures as often as a real one does.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from skyward.engine.nodes.host import OnClosed, OnFrame, Prepared
from skyward.errors import TransportError
from skyward.hookspecs import Instance, InstanceState, LaunchRequest, Offer, ProviderFacts, hookimpl
from skyward.link.frames import VERSION, Frame, Kind, Parser, encode, encode_json
from skyward.link.messages import CALL, RESULT, Status
from skyward.link.payload_making import dump
from skyward.node.agent.fds import close_all

NOTHING = dump(None).encode()


class SimulatedCloud:
    """
    Rent machines that are there at once.

    Args:
        task_s: Seconds that each task takes.
    """

    def __init__(self, task_s: float) -> None:
        self.task_s = task_s
        self.machines: dict[str, Machine] = {}
        self.granted: list[float] = []
        self.members_sent = 0
        self._numbers = itertools.count()

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="simulated", ends_own_bill=True, billing_granularity_s=1.0)

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        return [Offer(provider="simulated", instance_type="small", on_demand_price=0.5)]

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        made = []
        for node in request.nodes:
            machine = Machine(f"i-{next(self._numbers)}", self)
            self.machines[machine.name] = machine
            made.append(machine.instance(request, node))
        self.granted.append(time.perf_counter())
        return made

    @hookimpl
    async def skyward_instances(self) -> Sequence[Instance]:
        return [machine.last for machine in self.machines.values()]

    @hookimpl
    async def skyward_terminate(self, ids: Sequence[str]) -> None:
        for name in ids:
            self.machines.pop(name, None)


class Machine:
    """
    Be a machine, what its address leads to, and its host.

    Args:
        name: Its id.
        cloud: What it is of.
    """

    def __init__(self, name: str, cloud: SimulatedCloud) -> None:
        self.name = name
        self.cloud = cloud
        self.agent: Agent | None = None
        self.last: Instance

    def instance(self, request: LaunchRequest, node: int) -> Instance:
        number = int(self.name.removeprefix("i-"))
        self.last = Instance(
            id=self.name,
            node=node,
            provider="simulated",
            state=InstanceState.RUNNING,
            address=self,  # type: ignore[arg-type]  # it makes its own host
            private_ip=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
            hourly_rate=0.5,
            tags=request.tags_of(node),
        )
        return self.last

    def make_host(self, mark: str, recipe: Any) -> Machine:
        return self

    def lose(self) -> None:
        """
        Be gone, with all that runs here; called in the loop.
        """
        self.cloud.machines.pop(self.name, None)
        if self.agent is not None:
            self.agent.close(TransportError("the machine was taken back"))

    async def prepare(self) -> Prepared:
        return Prepared(python="python", env={})

    async def open(self, on_frame: OnFrame, on_closed: OnClosed) -> Agent:
        self.agent = Agent(self.cloud, on_frame, on_closed)
        return self.agent

    async def flush(self) -> None: ...

    async def unmount(self, folders: Sequence[str]) -> str:
        return ""

    def last_words(self) -> str:
        return ""

    async def end(self, patience: float) -> None:
        if self.agent is not None:
            self.agent.close()

    async def end_machine(self) -> bool:
        return False

    async def close(self) -> None: ...


class Agent:
    """
    Be the link to an agent and the agent itself.

    Args:
        cloud: Counts what it is sent, and says how long a task takes.
        on_frame: Takes what it sends.
        on_closed: Called once when the link is over.
    """

    connected = True
    backlog = queued = 0

    def __init__(self, cloud: SimulatedCloud, on_frame: OnFrame, on_closed: OnClosed) -> None:
        self.closed = False
        self.on_drained: Callable[[], None] | None = None
        self._cloud = cloud
        self._on_frame = on_frame
        self._on_closed = on_closed
        self._loop = asyncio.get_running_loop()
        self._parser = Parser()
        self._waiting: deque[Frame] = deque()
        self._busy = False

    def flush(self) -> None: ...

    def end(self) -> None:
        self.close()

    def close(self, error: Exception | None = None) -> None:
        if not self.closed:
            self.closed = True
            self._loop.call_soon(self._on_closed, error)

    def send(self, frame: bytes, fds: Sequence[int] = (), hold: object = None, receipt: Any = None) -> None:
        if receipt is not None:
            self._loop.call_soon(receipt)
        for heard in self._parser.feed(frame):
            match heard.kind:
                case Kind.TASK:
                    self._waiting.append(heard)
                    self._next()
                case Kind.MEMBERS:
                    self._cloud.members_sent += len(heard.body)
                case Kind.HELLO:
                    told = {"version": VERSION, "hostname": "simulated", "port": 1, "now": time.time()}
                    self._say(encode_json(Kind.WELCOME, told))
                case Kind.START:
                    length = int.from_bytes(heard.body[:4], "little")
                    self._start(json.loads(heard.body[4 : 4 + length]))
                case Kind.STOP:
                    self._say(encode(Kind.STOPPED))
                case Kind.RECALL:
                    back = [self._waiting.pop() for _ in range(len(self._waiting))]
                    self._say(encode(Kind.RECALLED, b"".join(one.body[: CALL.size] for one in reversed(back))))

    def _start(self, config: dict[str, Any]) -> None:
        self._say(encode_json(Kind.READY, {"lanes": len(config["lanes"])}))
        if metrics := config["metrics"]:
            values = [[one["source"], one["name"], one["unit"], 1.0] for one in metrics]
            self._measure(encode_json(Kind.METRIC, {"values": values, "troubles": []}), metrics[0]["interval"])

    def _measure(self, told: bytes, interval: float) -> None:
        if not self.closed:
            self._say(told)
            self._loop.call_later(interval, self._measure, told, interval)

    def _next(self) -> None:
        if self._waiting and not self._busy:
            self._busy = True
            self._loop.call_later(self._cloud.task_s, self._answer, self._waiting.popleft())

    def _answer(self, task: Frame) -> None:
        self._busy = False
        (call,) = CALL.unpack_from(task.body)
        self._hear(Frame(Kind.RESULT, task.lane, 0, RESULT.pack(call, Status.OK, self._cloud.task_s, 0.0) + NOTHING))
        self._next()

    def _say(self, frame: bytes) -> None:
        for said in self._parser.feed(frame):
            self._loop.call_soon(self._hear, said)

    def _hear(self, frame: Frame) -> None:
        if not self.closed:
            self._on_frame(frame, ())
        else:
            close_all(())
