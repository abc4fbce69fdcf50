"""Streams out of calls and into them, on nodes that answer as scripted."""

from __future__ import annotations

import pytest

from skyward.engine.calls.call import Call
from skyward.engine.calls.settling import stalled_streams
from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind
from skyward.link.messages import ITEM, RESULT, Status
from skyward.link.payload_making import dump, pack
from tests.simulated.plan import Plan, dies, raises, returns
from tests.simulated.stage import Stage

WRONG = raises(ValueError("wrong"), 1.0)


def test_items_come_in_order_and_no_further_than_the_window() -> None:
    """Credit lets more come; the end comes last."""
    with Stage([1]) as stage:
        call = stage.send(Plan(items=tuple(range(40))), streams=True)
        stage.run(1.0)
        assert list(range(16)) == call.sink.items
        stage.dispatch.credit(call, 16)
        stage.run(1.0)
        assert list(range(32)) == call.sink.items
        assert [] == call.sink.answers
        stage.dispatch.credit(call, 16)
        stage.run()
        assert list(range(40)) == call.sink.items
        assert call.sink.outcome is None


def _item(call: Call) -> Frame:
    return Frame(Kind.ITEM, 0, 0, ITEM.pack(call.id, 0) + dump("more").encode())


def test_a_node_that_sends_items_beyond_the_window_is_refused() -> None:
    """By the stream's name; what is taken makes room."""
    with Stage([1]) as stage:
        call = stage.send(Plan(items=tuple(range(40)), seconds=1e9), streams=True)
        stage.run(1.0)
        with pytest.raises(ProtocolError, match=r"an item of act\(\) beyond its window: 16 items or 8388608 bytes"):
            stage.dispatch.on_frame(0, _item(call), ())
        stage.dispatch.credit(call, 1)
        stage.dispatch.on_frame(0, _item(call), ())
        assert [*range(16), "more"] == call.sink.items


def test_a_call_that_is_no_stream_has_no_items() -> None:
    """A node that sends one is refused; the items of a finished call are dropped."""
    with Stage([1]) as stage:
        call = stage.send(returns("it", 5.0))
        stage.run(1.0)
        with pytest.raises(ProtocolError, match=r"an item of act\(\), which gives none"):
            stage.dispatch.on_frame(0, _item(call), ())
        stage.run()
        stage.dispatch.on_frame(0, _item(call), ())
        assert "it" == call.sink.outcome


@pytest.mark.parametrize("kind", [Kind.RESULT, Kind.ITEM])
def test_buffers_are_wanted_of_calls_that_a_node_has(kind: Kind) -> None:
    """Those of another call are refused; once the pool is closed, or the node is gone, they are dropped."""
    with Stage([1], [1]) as stage:
        call = stage.send(Plan(seconds=1e9), streams=True)
        stage.run(1.0)
        node, other = sorted((0, 1), key=stage.dispatch.idle)
        head = ITEM.pack(call.id, 0) if kind == Kind.ITEM else RESULT.pack(call.id, Status.OK, 0.0, 0.0)
        frame = Frame(kind, 0, 1, head + pack([bytes(300_000)]).encode())
        assert stage.dispatch.on_announced(node, frame)
        with pytest.raises(ProtocolError, match=rf"announced 300032 bytes for call {call.id}, which it was not given"):
            stage.dispatch.on_announced(other, frame)
        stage.dispatch.remove(other, "it was lost")
        assert not stage.dispatch.on_announced(other, frame)
        stage.dispatch.close("The pool 'train' is closed.")
        assert not stage.dispatch.on_announced(node, frame)


@pytest.mark.parametrize(("plan", "error"), [(WRONG, "ValueError"), (dies(), "WorkerDiedError")])
def test_a_stream_that_gave_items_is_not_begun_anew(plan: Plan, error: str) -> None:
    """Its first items would come twice; one that gave none is."""
    with Stage([1]) as stage:
        broken = Plan(items=(1, 2), ends=plan.ends, value=plan.value)
        call = stage.send(broken, streams=True, retries=3, interruptions=3)
        stage.run()
        assert ([1, 2], error) == (call.sink.items, call.sink.outcome)
        again = stage.send(plan, Plan(items=(1,)), streams=True, retries=1)
        stage.run()
        assert ([1], None) == (again.sink.items, again.sink.outcome)


def test_items_of_an_attempt_that_was_given_up_are_nobodys() -> None:
    """They are on their way while the node is taken as lost."""
    with Stage([1], [1]) as stage:
        call = stage.send(Plan(items=(1,)), Plan(items=(2,)), streams=True, interruptions=1)
        stage.run(0.0015)
        stage.dispatch.remove(0, "it was lost")
        stage.run()
        assert [2] == call.sink.items


def test_streams_that_nobody_reads_are_stalled_if_nothing_else_runs() -> None:
    """They could never end; so they are not waited for."""
    with Stage([1], [1]) as stage:
        stream = stage.send(Plan(items=tuple(range(40))), streams=True)
        other = stage.send(returns("other", 5.0))
        stage.run(1.0)
        stream.sink.is_stalled = True
        assert [] == stalled_streams(stage.dispatch.calls)
        stage.run(5.0)
        assert [stream] == stalled_streams(stage.dispatch.calls)
        stage.dispatch.cancel([stream])
        stage.run()
        assert ("CancelledError", "other") == (stream.sink.outcome, other.sink.outcome)


def test_a_stream_that_gave_items_ends_with_its_node() -> None:
    """What was consumed cannot be taken back, however often its node may be lost."""
    with Stage([1], [1]) as stage:
        call = stage.send(Plan(items=(1, 2), seconds=1e9), streams=True, interruptions=3)
        stage.run(1.0)
        stage.nodes[0].lose()
        stage.run()
        assert ([1, 2], "NodeLostError") == (call.sink.items, call.sink.outcome)
        assert [] == stage.nodes[1].begun


class Fed:
    """Be what feeds a call, and keep when it was started and stopped."""

    def __init__(self) -> None:
        self.seen: list[object] = []

    def start(self, call: Call, outflow: object) -> None:
        """Take note of the node."""
        self.seen.append(call.on)

    def acknowledged(self, stream: int, items: int) -> None:
        """Take note of items."""
        self.seen.append((stream, items))

    def stop(self) -> None:
        """Take note of the end."""
        self.seen.append("stop")


def test_a_call_that_is_fed_is_never_sent_ahead() -> None:
    """It might be given back, and what it was fed by then would be lost; so it runs where a slot is free first."""
    with Stage([1], [1], buffer=1) as stage:
        for node in (0, 1):
            stage.outcome(returns("the lane is known to be roomy"), node=node)
        for node in (0, 1):
            stage.send(returns("held", 5.0 - 3.0 * node), node=node)
        fed = Fed()
        call = stage.send(returns("fed"), feeder=fed)
        plain = stage.send(returns("plain"))
        stage.run(1.0)
        assert (None, []) == (call.on, fed.seen)
        stage.run()
        assert [1, "stop"] == fed.seen
        assert ("fed", "plain") == (call.sink.outcome, plain.sink.outcome)


def test_what_a_node_consumed_is_told_to_what_feeds_it() -> None:
    """As long as the call runs there."""
    with Stage([1]) as stage:
        fed = Fed()
        call = stage.send(Plan(takes=2), feeder=fed)
        stage.run(1.0)
        for item in range(2):
            assert stage.dispatch.send_input(call, lambda link, item=item: link.send_item(call, 0, dump(item)))  # type: ignore[misc]
        stage.run(1.0)
        assert [0, (0, 1), (0, 1), "stop"] == fed.seen
        assert [0, 1] == call.sink.outcome
        assert not stage.dispatch.send_input(call, lambda link: link.send_end(call, 0, b""))
