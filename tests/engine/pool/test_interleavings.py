"""Calls, cancels, losses, cuts and drains in any order: every call ends exactly once, and no slot is lost."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import settings, strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from skyward.engine.calls.call import Call
from skyward.plan.pool.retry_policy import RENEWALS
from tests.simulated.plan import HANGS, SPENT, Plan, dies, raises, returns
from tests.simulated.stage import Heard, Stage

NODES = 3
SLOTS = (2, 1)
BUDGET = st.integers(0, 2)
SECONDS = st.sampled_from([0.0, 0.0005, 0.001, 0.0015, 0.02, 1.0, 5.0])
ENDINGS: tuple[Callable[[float], Plan], ...] = (
    lambda seconds: returns(seconds, seconds),
    lambda seconds: raises(ValueError(), seconds),
    dies,
    lambda seconds: SPENT,
    lambda seconds: HANGS,
    lambda seconds: Plan(items=(1, 2, 3), seconds=seconds),
    lambda seconds: Plan(seconds=seconds, unwinds=0.5),
)
PLANS = st.lists(
    st.builds(lambda make, seconds: make(seconds), st.sampled_from(ENDINGS), SECONDS), min_size=1, max_size=3
)


class Interleavings(RuleBasedStateMachine):
    """Do to a dispatch and its nodes whatever may happen, at any moment."""

    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(*[SLOTS] * NODES, ranks=2, buffer=1, twice=True)
        self.seats: list[int] = []
        self.sent: list[tuple[Call, Heard, int]] = []

    def _sent(self, call: Call) -> Call:
        attempts = 1 + RENEWALS + call.retries + call.interruptions
        self.sent.append((call, call.sink, attempts))  # type: ignore[arg-type]  # a `Heard`
        return call

    @rule(target=calls, plans=PLANS, retries=BUDGET, interruptions=BUDGET, limit=SECONDS, streams=st.booleans())
    def send(self, plans: list[Plan], retries: int, interruptions: int, limit: float, *, streams: bool) -> Call:
        return self._sent(
            self.stage.send(*plans, retries=retries, interruptions=interruptions, timeout=limit, streams=streams)
        )

    @rule(target=calls, plans=PLANS, node=st.integers(0, NODES - 1), interruptions=BUDGET)
    def send_to(self, plans: list[Plan], node: int, interruptions: int) -> Call:
        return self._sent(self.stage.send(*plans, node=node, interruptions=interruptions))

    @rule(target=calls, plans=PLANS, which=st.integers(0, 2 * NODES))
    def broadcast(self, plans: list[Plan], which: int) -> Call:
        if not any(index >= 0 for index in self.stage.dispatch.members):
            return self.send(plans, 0, 0, 0.0, streams=False)
        calls = self.stage.broadcast(*plans)
        for call in calls:
            call.sink = self.stage.heard() if not call.sink.answers else call.sink  # type: ignore[attr-defined]
            self._sent(call)
        return calls[which % len(calls)]

    @rule(call=calls)
    def cancel(self, call: Call) -> None:
        self.stage.dispatch.cancel([call])

    @rule(seconds=SECONDS)
    def wait(self, seconds: float) -> None:
        self.stage.run(seconds)

    @rule(node=st.integers(0, NODES - 1), rescued=st.booleans())
    def lose(self, node: int, *, rescued: bool) -> None:
        if node in self.stage.dispatch.members:
            self.stage.nodes[node].lose(rescued=rescued)

    @rule(node=st.integers(0, NODES - 1))
    def replace(self, node: int) -> None:
        if node not in self.stage.dispatch.members:
            self.stage.add(SLOTS, index=node)

    @rule(node=st.integers(0, NODES - 1))
    def leave(self, node: int) -> None:
        if node in self.stage.dispatch.members:
            self.seats.append(self.stage.leave(node))

    @rule()
    def gone(self) -> None:
        if self.seats:
            self.stage.dispatch.remove(self.seats.pop(), "it was given back")

    @rule(node=st.integers(0, NODES - 1), cut=st.booleans())
    def cut(self, node: int, *, cut: bool) -> None:
        if cut:
            self.stage.nodes[node].cut()
        else:
            self.stage.nodes[node].mend()

    @invariant()
    def nothing_ends_twice(self) -> None:
        """Each call is answered once at most, and tried no more often than it may."""
        for call, sink, attempts in self.sent:
            assert len(sink.answers) <= 1
            assert call.attempt <= attempts

    @invariant()
    def nothing_is_forgotten(self) -> None:
        """What has no answer is queued or runs."""
        open_calls = sum(not sink.answers for _, sink, _ in self.sent)
        assert self.stage.dispatch.running <= open_calls
        assert bool(open_calls) == bool(self.stage.dispatch.running or self.stage.dispatch.queued)

    def teardown(self) -> None:
        """When links and nodes are back and what hangs was cancelled, all calls have ended and all slots are free."""
        try:
            self._settle(self.stage)
        finally:
            self.stage.loop.close()

    def _settle(self, stage: Stage) -> None:
        while self.seats:
            stage.dispatch.remove(self.seats.pop(), "it was given back")
        for node in range(NODES):
            self.replace(node)
            stage.nodes[node].mend()
        stage.run()
        stage.dispatch.cancel_all()
        stage.run()
        assert [1] * len(self.sent) == [len(sink.answers) for _, sink, _ in self.sent]
        assert (0, 0) == (stage.dispatch.running, stage.dispatch.queued)
        begun = [len(stage.nodes[node].begun) for node in range(NODES)]
        for _ in range(stage.dispatch.slots):
            stage.send(HANGS)
        stage.run(1.0)
        assert 0 == stage.dispatch.queued
        after = [len(stage.nodes[node].begun) for node in range(NODES)]
        assert [sum(SLOTS)] * NODES == [now - before for before, now in zip(begun, after, strict=True)]
        assert [] == stage.errors


TestInterleavings = Interleavings.TestCase
TestInterleavings.settings = settings(max_examples=50, stateful_step_count=20)
