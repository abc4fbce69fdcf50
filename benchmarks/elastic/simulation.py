"""
A pool on a virtual clock: the scheduler, the life of the pool and the autoscaler are the real ones, machines are not.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any, NamedTuple

from elastic.loads import Load
from skyward.engine.instances.autoscaling import Sizing
from skyward.model.spec.nodes import Nodes
from skyward.model.spec.options import Options
from skyward.plan.pool import lifecycle, lifecycle_events
from skyward.plan.pool.places import NodeStatus
from skyward.plan.pool.scheduling import Scheduler
from skyward.plan.pool.workload import estimate


class Market(NamedTuple):
    """
    What machines are like.

    Args:
        boot: Seconds from asking for one until it takes calls.
        rate: What one costs, in USD an hour.
        slots: Calls that one runs at once.
        minimum: Seconds that one is billed for at least.
    """

    boot: float = 90.0
    rate: float = 2.0
    slots: int = 1
    minimum: float = 60.0


class Run(NamedTuple):
    """
    What became of a load.

    Args:
        lives: From when to when each machine was billed.
        waits: For how long each call waited.
        machines: When the number of machines changed, and to how many.
        busy: When the number of calls that waited or ran changed, and to how many.
        ended: When the last call ended.
        decisions: How often the size was decided on.
    """

    lives: tuple[tuple[float, float], ...]
    waits: tuple[float, ...]
    machines: tuple[tuple[float, int], ...]
    busy: tuple[tuple[float, int], ...]
    ended: float
    decisions: int

    def cost(self, market: Market) -> float:
        """Return what it cost, in USD."""
        return sum(max(market.minimum, end - begin) for begin, end in self.lives) * market.rate / 3600


class Clock:
    """Be the loop and the engine of a pool: what is due is done, and the next thing is at once."""

    def __init__(self) -> None:
        self.now = 0.0
        self.loop = self
        self._numbers = count()
        self._due: list[tuple[float, int, Callable[..., object], tuple[Any, ...]]] = []

    def time(self) -> float:
        """Return the time."""
        return self.now

    def call_later(self, seconds: float, do: Callable[..., object], *given: Any) -> None:
        """Have something done later."""
        heapq.heappush(self._due, (self.now + seconds, next(self._numbers), do, given))

    def post(self, do: Callable[..., object], *given: Any) -> None:
        """Have something done now."""
        self.call_later(0.0, do, *given)

    def run(self, over: Callable[[], bool]) -> None:
        """Let time go on."""
        while not over():
            self.now, _, do, given = heapq.heappop(self._due)
            do(*given)


class SimulatedPool:
    """
    Be what of an open pool its size depends on.

    Args:
        load: What is to be done.
        bounds: Between which its size may be.
        market: What machines are like.
        options: How fast its size may change.
        made: Makes what decides on its size.
    """

    def __init__(
        self,
        load: Load,
        bounds: Nodes,
        market: Market,
        options: Options | None = None,
        made: Callable[..., Any] = Sizing,
    ) -> None:
        self.engine: Any = Clock()
        self.name = load.name
        self.provisioning: Any = SimpleNamespace(
            slots_per_node=market.slots,
            hourly_rate=market.rate,
            collective=False,
            facts=SimpleNamespace(rents=True, minimum_billed_s=market.minimum, billing_granularity_s=1.0),
        )
        self.dispatch: Any = self
        self.calls: tuple[Any, ...] = ()
        self.refusal = None
        self.decisions = 0
        self._load, self._market = load, market
        self._scheduler = Scheduler()
        self._began: dict[int, float] = {}
        self._sent = 0
        self._open = 0
        self._rented: dict[int, float] = {}
        self._lives: list[tuple[float, float]] = []
        self._machines: list[tuple[float, int]] = [(0.0, 0)]
        self._busy: list[tuple[float, int]] = [(0.0, 0)]
        self._ended = 0.0
        self.state = lifecycle.PoolState(desired=bounds.initial, needed=bounds.floor)
        self.sizing: Any = made(self, bounds, options or Options())

    # What the autoscaler asks.

    @property
    def queued(self) -> int:
        """Count the calls that wait."""
        return self._scheduler.queued

    def workload(self) -> Any:
        """Estimate what there is to do."""
        self.decisions += 1
        return estimate(self._scheduler, self.engine.now)

    def idle_nodes(self) -> Sequence[int]:
        """List the nodes that run nothing."""
        return [node for node in self.state.ready if not self._scheduler.busy(node)]

    def change_size(self, desired: int) -> None:
        """Change the number of nodes."""
        self._step(lifecycle_events.Resized(desired, tuple(self.idle_nodes())))

    # The load.

    def run(self) -> Run:
        """Run the load to its end, and return what became of it."""
        for number, call in enumerate(self._load.calls):
            self.engine.call_later(call.at, self._submit, number)
        self.engine.call_later(self._load.until, lambda: None)
        self._step(lifecycle_events.Opened())
        self.sizing.start()
        calls = len(self._load.calls)
        self.engine.run(lambda: self._sent == calls and not self._open and self.engine.now >= self._load.until)
        self._step(lifecycle_events.Closed())
        return Run(
            lives=tuple(self._lives),
            waits=tuple(self._began[number] - call.at for number, call in enumerate(self._load.calls)),
            machines=tuple(self._machines),
            busy=tuple(self._busy),
            ended=self._ended,
            decisions=self.decisions,
        )

    def fill(self, nodes: int, calls: int) -> None:
        """Have so many nodes at once, and so many calls."""
        self._step(lifecycle_events.Opened())
        for node in range(nodes):
            self._ready(node, self._rented[node])
        for number in range(calls):
            self._scheduler.submit(number, b"f")
        self._scheduler.assign(self.engine.now)

    def _submit(self, number: int) -> None:
        self._sent += 1
        self._change(1)
        self._scheduler.submit(number, self._load.calls[number].function)
        self._assign()
        if not self.state.desired:
            self.sizing.look()

    def _assign(self) -> None:
        now = self.engine.now
        for made in self._scheduler.assign(now):
            if made.begins:
                self._begin(made.call)

    def _begin(self, number: int) -> None:
        self._began[number] = self.engine.now
        self.engine.call_later(self._load.calls[number].seconds, self._finish, number)

    def _finish(self, number: int) -> None:
        now = self._ended = self.engine.now
        follower = self._scheduler.finished(number, self._load.calls[number].seconds, now=now)
        if follower is not None:
            self._begin(follower)
        self._change(-1)
        self._assign()

    def _change(self, by: int) -> None:
        self._open += by
        self._busy.append((self.engine.now, self._open))

    # Machines.

    def _step(self, event: lifecycle_events.Event) -> None:
        self.state, commands = lifecycle.step(self.state, event)
        for command in commands:
            match command:
                case lifecycle_events.Launch(nodes):
                    self._step(lifecycle_events.Asked(nodes))
                    self.sizing.asked(nodes)
                    for node in nodes:
                        self._rented[node] = self.engine.now
                        self._count()
                        self.engine.call_later(self._market.boot, self._ready, node, self.engine.now)
                case lifecycle_events.Terminate(node, _):
                    self._end(node)

    def _ready(self, node: int, rented: float) -> None:
        if self._rented.get(node) != rented:
            return
        self._step(lifecycle_events.Launched(node))
        if node not in self.state.nodes or self.state.nodes[node].status is not NodeStatus.STARTING:
            return
        self.sizing.started(node)
        self._step(lifecycle_events.Started(node))
        self._scheduler.add_node(node, [(0, 0, self._market.slots)])
        self._assign()

    def _end(self, node: int) -> None:
        self._lives.append((self._rented.pop(node), self.engine.now))
        self._count()
        self._scheduler.remove_node(node)
        if not self.state.closing:
            self._step(lifecycle_events.Ended(node))

    def _count(self) -> None:
        self._machines.append((self.engine.now, len(self._rented)))


class FormerSizing:
    """
    Decide on the size as before: twice as large at most, for as long as anything waits, once in a cooldown.

    Args:
        pool: The pool.
        bounds: Between which its size may be.
        options: How fast it may change.
    """

    def __init__(self, pool: SimulatedPool, bounds: Nodes, options: Options) -> None:
        self._pool, self._bounds, self._options = pool, bounds, options
        self._changed_at = 0.0
        self._idle_since: dict[int, float] = {}

    def start(self) -> None:
        """Look once a second."""
        self.look()
        self._pool.engine.call_later(1.0, self.start)

    def asked(self, nodes: Sequence[int]) -> None:
        """Learn nothing."""

    def started(self, node: int) -> None:
        """Learn nothing."""

    def look(self) -> None:
        """Decide on the size now."""
        pool, now = self._pool, self._pool.engine.now
        pool.decisions += 1
        gathering = len(pool.state.ready) < pool.state.desired
        idle = () if gathering else pool.idle_nodes()
        self._idle_since = {node: self._idle_since.get(node, now) for node in idle}
        if now - self._changed_at < self._options.autoscale_cooldown:
            return
        desired = pool.state.desired
        if pool.queued:
            needed = desired + -(-pool.queued // pool.provisioning.slots_per_node)
            then = max(desired, min(needed, 2 * desired, self._bounds.ceiling))
        else:
            timeout = self._options.autoscale_idle_timeout
            going = sum(now - since >= timeout for since in self._idle_since.values())
            then = max(self._bounds.floor, desired - going)
        if then != desired:
            self._changed_at = now
            pool.change_size(then)


def simulate(
    load: Load, bounds: Nodes, market: Market, options: Options | None = None, made: Callable[..., Any] = Sizing
) -> Run:
    """
    Run a load in an elastic pool.

    Args:
        load: What is to be done.
        bounds: Between which its size may be.
        market: What machines are like.
        options: How fast its size may change.
        made: Makes what decides on its size.
    """
    return SimulatedPool(load, bounds, market, options, made).run()
