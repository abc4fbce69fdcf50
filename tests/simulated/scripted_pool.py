"""A pool of scripted nodes: what the operators do in the user's threads, without processes and machines."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from attrs import evolve

from skyward.engine.calls.call_making import CallMaker
from skyward.engine.calls.cancelling import Cancelling
from skyward.engine.calls.dispatch import Dispatch
from skyward.engine.calls.inherited_calls import InheritedCalls
from skyward.engine.events.trails import Trails
from skyward.engine.nodes.member import Member
from skyward.engine.nodes.membership import Membership
from skyward.engine.nodes.node_link import NodeLink
from skyward.engine.pool.event_loop import EngineLoop
from skyward.engine.pool.running import Running
from skyward.engine.pool.wholeness import Wholeness
from skyward.model.instances.instance import InstanceInfo
from skyward.model.spec.options import Options
from skyward.plan.pool.lifecycle import PoolState
from skyward.plan.pool.places import NodeState, NodeStatus
from tests.simulated.loop import VirtualLoop
from tests.simulated.node import Script, ScriptedNode, by_arguments
from tests.simulated.stage import Attempts
from tests.waiting import until


class _NoModules:
    """Ship nothing: scripted nodes import nothing."""

    def send_new(self) -> None:
        """Do nothing."""


class _Places:
    """Say how many ranks a node has."""

    ranks_per_node = 1


class _Silent:
    """Keep what the console would be told."""

    def __init__(self, told: list[tuple[str, int | None, int]]) -> None:
        self._told = told

    def progress(self, label: str, total: int | None) -> Callable[[int], None]:
        """Return what is told how far something is."""
        return lambda done: self._told.append((label, total, done))

    def caught_up(self) -> None:
        """Nothing was printed."""


class CountedWaits(Wholeness):
    """Count the threads that wait for lost nodes to be replaced."""

    waited = 0

    def wait(self, within: float | None = None) -> None:
        """Count it, and wait."""
        self.waited += 1
        super().wait(within)


class ScriptedPool(Running):
    """
    Run calls on scripted nodes, as an open pool does; its loop has a thread and virtual time.

    Time goes by whenever the loop has nothing to do, whatever the test's thread does meanwhile:
    what has to last until that thread reacts is planned as `HANGS`.

    Args:
        nodes: For each node the slots of its lanes.
        script: What becomes of each attempt.
        options: How the pool behaves.
    """

    def __init__(self, *nodes: Sequence[int], script: Script = by_arguments, **options: Any) -> None:
        self.engine = EngineLoop(lambda: VirtualLoop(sockets=False))
        self.name = "train"
        self.options = Options(console="silent", **options)
        self.provisioning = _Places()  # type: ignore[assignment]
        self.observer = Attempts()
        self.told: list[tuple[str, int | None, int]] = []
        self.reporting = _Silent(self.told)  # type: ignore[assignment]
        self.membership = Membership("job")
        self.dispatch = Dispatch(
            self.engine, pool=self.name, buffer=0, observer=self.observer, membership=self.membership.of
        )
        self.cancel_soon = Cancelling(self.engine, self.dispatch.cancel).put
        self.caught_up = self.reporting.caught_up
        feed = lambda *sent: self.engine.post(self.dispatch.send_input, *sent)  # as a pool does
        self.maker = CallMaker(_NoModules(), self.options, feed, Trails())  # type: ignore[arg-type]
        self.scripted: dict[int, ScriptedNode] = {}
        self.inherited = InheritedCalls(self.engine, self.name, None, lambda _: None, self.caught_up)
        self.errors: list[BaseException] = []
        self.whole = CountedWaits(self.name, lambda: self._state, lambda: False)
        self._script = script
        self._state = PoolState(desired=len(nodes), needed=1)
        self.engine.loop.set_exception_handler(lambda loop, context: self.errors.append(context["exception"]))
        for index, slots in enumerate(nodes):
            self.do(self._add, index, slots)

    def __enter__(self) -> Self:
        return self

    def leave(self) -> None:
        """Close the pool, as leaving its block does."""
        self._state = evolve(self._state, closing=True)
        self.whole.changed()
        self.do(self.dispatch.close, "The pool 'train' is closed.")

    def __exit__(self, *_: object) -> None:
        self.leave()
        # What feeds calls says that it has ended, for which the loop has to be there.
        until(lambda: not any(thread.name == "skyward-feeder" for thread in threading.enumerate()))
        self.engine.close()
        assert [] == self.errors

    def do(self, what: Callable[..., Any], *args: Any) -> Any:
        """Have something done in the loop, and wait for what it gives."""

        async def done() -> Any:
            return what(*args)

        return self.engine.run(done())

    @property
    def slots(self) -> int:
        """Count the slots of all nodes."""
        return sum(sum(node.slots) for node in list(self.scripted.values()))

    def _add(self, index: int, slots: Sequence[int]) -> None:
        node = ScriptedNode(self.engine.loop, index, slots=slots, script=self._script)
        member = Member(
            index, NodeLink(node), f"node {index}", tuple((lane, 0, size) for lane, size in enumerate(slots))
        )
        node.on_frame = lambda frame, fds: self.dispatch.on_frame(index, frame, fds)
        node.on_closed = lambda error: self._left(index, slots, str(error))
        self.scripted[index] = node
        self._ready(index, {**self._state.nodes, index: NodeState(NodeStatus.READY)})
        self.membership.join(index, InstanceInfo(node=index))
        self.dispatch.add(member)

    def _ready(self, index: int, nodes: dict[int, NodeState]) -> None:
        self._state = PoolState(desired=self._state.desired, needed=1, nodes=nodes)
        self.whole.changed()

    def _left(self, index: int, slots: Sequence[int], why: str) -> None:
        """Have another node in the place of a lost one, a minute later."""
        self._ready(index, {number: state for number, state in self._state.nodes.items() if number != index})
        self.membership.drop(index)
        self.dispatch.remove(index, why)
        self.engine.loop.call_later(60.0, self._add, index, slots)


@contextlib.contextmanager
def still() -> Iterator[threading.Event]:
    """Have the pool's time stand still until the event is set: what another thread does takes no time."""
    moves = threading.Event()
    thread = threading.Thread(target=moves.wait, args=(10,), name="skyward-blocking", daemon=True)
    thread.start()
    try:
        yield moves
    finally:
        moves.set()
        thread.join()


def idle(pool: ScriptedPool) -> bool:
    """Tell whether no call is under way."""
    return pool.do(lambda: pool.dispatch.running + pool.dispatch.queued) == 0
