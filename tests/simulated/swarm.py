"""
Nodes that hand a buffer on to each other, on a clock of their own: what `plan.pool.spreading` decides, over lines of
given rates, with nodes that die, stall, lie or cannot be reached.

    python -m tests.simulated.swarm
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import inf

from attrs import define, field, frozen

from skyward.model.instances.transfer import TransferOutcome
from skyward.plan.pool.spreading import CLIENT, Copies, Roads, Upload, decide

MIB = 1 << 20
STALL = 10.0
CONNECT = 3.0


@frozen(kw_only=True)
class World:
    """
    Say how lines and nodes are.

    Args:
        nodes: How many need the buffer.
        size: Its bytes.
        line: Bytes a second from the client, to all nodes together.
        network: Bytes a second out of each node, and into each.
        delay: Seconds until the client hears what a node says, and until a node does what it says.
        dies: When nodes die.
        stalls: Nodes that serve nothing, and say nothing about it.
        lies: Nodes that hand on other bytes.
        walls: Whether one node cannot connect to another.
        asks: When each node needs the buffer; at 0 if it is not in it.
    """

    nodes: int
    size: int = 256 * MIB
    line: float = 2.5e6
    network: float = 125e6
    delay: float = 0.05
    dies: dict[int, float] = field(factory=dict)
    stalls: frozenset[int] = frozenset()
    lies: frozenset[int] = frozenset()
    walls: Callable[[int, int], bool] = lambda source, node: False
    asks: dict[int, float] = field(factory=dict)


@define(eq=False)
class _Flow:
    source: int
    node: int
    left: float
    since: float


@define
class Swarm:
    """
    Run a world to its end.

    Args:
        world: What there is.
        apart: Whether nodes hand nothing on, as a pool whose nodes may not meet.
    """

    world: World
    apart: bool = False
    now: float = 0.0
    had: dict[int, float] = field(factory=dict)
    """When each node had the buffer."""
    sent: Counter[int] = field(factory=Counter)
    """Bytes out of each node, and of the client."""
    uploads: Counter[int] = field(factory=Counter)
    """How often the client began to send it to a node."""
    _copies: Copies = field(factory=Copies)
    _roads: Roads = field(factory=Roads)
    _flows: list[_Flow] = field(factory=list)
    _later: list[tuple[float, int, Callable[[], None]]] = field(factory=list)
    _numbers: itertools.count[int] = field(factory=itertools.count)
    _dead: set[int] = field(factory=set)

    def run(self, until: float = 1e6) -> Swarm:
        """
        Let time pass until nothing is under way.

        Raises:
            AssertionError: If nodes wait for ever.
        """
        world = self.world
        self._roads = Roads(shut=self.apart)
        for node in range(world.nodes):
            self._at(world.asks.get(node, 0.0), partial(self._ask, node))
        for node, when in world.dies.items():
            self._at(when, partial(self._die, node))
        while (self._flows or self._later) and self.now < until:
            self._step()
        alive = set(range(world.nodes)) - self._dead
        assert alive <= set(self.had), f"{sorted(alive - set(self.had))} never had it"
        return self

    @property
    def makespan(self) -> float:
        """Seconds until the last living node had it."""
        return max(when for node, when in self.had.items() if node not in self._dead)

    def _at(self, when: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._later, (when, next(self._numbers), do))

    def _after(self, seconds: float, do: Callable[[], None]) -> None:
        self._at(self.now + seconds, do)

    def _step(self) -> None:
        rates = self._rates()
        ends = [
            (self.now + flow.left / rate if rate else inf, flow) for flow, rate in zip(self._flows, rates, strict=True)
        ]
        first = min((end for end, _ in ends), default=inf)
        due = self._later[0][0] if self._later else inf
        then = min(first, due)
        assert then < inf, "what is under way never ends"
        for flow, rate in zip(self._flows, rates, strict=True):
            moved = min(flow.left, rate * (then - self.now))
            flow.left -= moved
            self.sent[flow.source] += round(moved)
        self.now = then
        if first <= due:
            flow = next(flow for end, flow in ends if end == first)
            self._flows.remove(flow)
            self._over(flow)
        else:
            heapq.heappop(self._later)[2]()

    def _rates(self) -> list[float]:
        """Share each line among what goes over it."""
        world = self.world
        out = Counter(flow.source for flow in self._flows)
        into = Counter(flow.node for flow in self._flows)
        return [
            0.0
            if flow.source in world.stalls
            else min(
                (world.line if flow.source == CLIENT else world.network) / out[flow.source],
                world.network / into[flow.node],
            )
            for flow in self._flows
        ]

    def _ask(self, node: int) -> None:
        if node not in self._dead:
            self._copies = self._copies.want(node)
            self._decide()

    def _decide(self) -> None:
        busy = Counter(source for source in self._copies.arriving.values() if source != CLIENT)
        self._copies, moves = decide(self._copies, self._roads, set(range(self.world.nodes)), busy)
        for move in moves:
            source = CLIENT if isinstance(move, Upload) else move.source
            self.uploads[move.node] += isinstance(move, Upload)
            self._after(self.world.delay, partial(self._begin, source, move.node))

    def _begin(self, source: int, node: int) -> None:
        if node in self._dead:
            return
        if source != CLIENT and (source in self._dead or self.world.walls(source, node)):
            self._after(CONNECT, lambda: self._report(source, node, TransferOutcome.UNREACHED))
            return
        flow = _Flow(source, node, float(self.world.size), self.now)
        self._flows.append(flow)
        if source in self.world.stalls:
            self._after(STALL, lambda: self._give_up(flow))

    def _give_up(self, flow: _Flow) -> None:
        if flow in self._flows:
            self._flows.remove(flow)
            self._report(flow.source, flow.node, TransferOutcome.STALLED)

    def _over(self, flow: _Flow) -> None:
        false = flow.source in self.world.lies
        if not false:
            self.had[flow.node] = self.now
        self._report(flow.source, flow.node, TransferOutcome.WRONG if false else TransferOutcome.OK)

    def _report(self, source: int, node: int, outcome: TransferOutcome) -> None:
        def heard() -> None:
            if node in self._dead or self._copies.arriving.get(node) != source:
                return
            if source != CLIENT:
                self._roads = self._roads.learn(source, node, outcome)
            copies = self._copies
            self._copies = copies.landed(node) if outcome is TransferOutcome.OK else copies.failed(node, outcome)
            self._decide()

        self._after(self.world.delay, heard)

    def _die(self, node: int) -> None:
        self._dead.add(node)
        for flow in [flow for flow in self._flows if node in (flow.source, flow.node)]:
            self._flows.remove(flow)
            if flow.node != node:
                self._report(node, flow.node, TransferOutcome.STALLED)

        def noticed() -> None:
            self._copies = self._copies.without(node)
            self._decide()

        self._after(self.world.delay, noticed)


def table() -> str:
    """Compare what the client's line carries, and how long it takes, with and without handing on."""
    rows = ["| nodes | fault | client's line, MiB | busiest node, MiB | seconds | through the client, MiB | seconds |"]
    rows.append("|---|---|---|---|---|---|---|")
    for nodes in (2, 8, 32, 100, 1000):
        for fault, world in {
            "none": World(nodes=nodes),
            "the first holder dies while it serves": World(nodes=nodes, dies={0: 256 * MIB / 2.5e6 + 1.0}),
            "a tenth stall as sources": World(nodes=nodes, stalls=frozenset(range(1, nodes, 10))),
            "a tenth hand on other bytes": World(nodes=nodes, lies=frozenset(range(1, nodes, 10))),
            "none reaches another": World(nodes=nodes, walls=lambda source, node: True),
        }.items():
            shared, apart = Swarm(world).run(), Swarm(World(nodes=nodes), apart=True).run()
            busiest = max((sent for node, sent in shared.sent.items() if node != CLIENT), default=0)
            cells = [nodes, fault, shared.sent[CLIENT] // MIB, busiest // MIB, f"{shared.makespan:.1f}"]
            rows.append(
                "| " + " | ".join(map(str, [*cells, apart.sent[CLIENT] // MIB, f"{apart.makespan:.1f}"])) + " |"
            )
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
