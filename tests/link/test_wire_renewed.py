"""One end of a link outlives the other: it is parked, and begins with the next one as if nothing had been before."""

from __future__ import annotations

import asyncio

from skyward.link.frames import Kind, encode
from tests.link.test_wire import End, Line, _result, _run


def _settle(line: Line) -> None:
    while line.step():
        pass


def test_a_parked_link_keeps_what_the_next_client_needs_and_nothing_else() -> None:
    """Measurements and lines of a time without a client would grow without end."""

    def test(node: End, client: End) -> None:
        line = Line(node, client)
        _settle(line)
        node.wire.park()
        node.wire.send(encode(Kind.METRIC, b"{}"))
        node.wire.send(encode(Kind.RESULT, b"of a worker that died"))
        node.wire.send(encode(Kind.RESULT, b"kept by its sender"), receipt=lambda: None)
        node.wire.flush()
        _settle(line)
        assert client.bodies() == []
        client.wire.abandon()
        successor = End(asyncio.get_running_loop())
        node.wire.renew("s")
        line = Line(node, successor)
        node.wire.send(encode(Kind.ANSWER, b"{}"))
        _settle(line)
        assert successor.bodies() == [b"{}"]
        node.wire.unpark()
        node.wire.flush()
        _settle(line)
        assert successor.bodies() == [b"{}", b"of a worker that died"]

    _run(test)


def test_what_was_half_sent_to_one_client_is_not_resumed_with_the_next() -> None:
    """The first one had a part of a buffer, and the second knows nothing of that."""

    def test(node: End, client: End) -> None:
        frame, fds, hold = _result(7, b"x" * 3_000_000)
        line = Line(node, client)
        _settle(line)
        node.wire.send(frame, fds, hold, lambda: None)
        node.wire.flush()
        for _ in range(3):
            line.step(100_000)
        node.wire.park()
        client.wire.abandon()
        successor = End(asyncio.get_running_loop())
        node.wire.renew("s")
        _settle(Line(node, successor))
        assert successor.bodies() == []
        node.wire.unpark()
        node.wire.send(frame, fds, hold, lambda: None)
        node.wire.flush()
        line = Line(node, successor)
        _settle(line)
        ((_, (content,)),) = successor.frames
        assert len(content) >= 3_000_000
        assert successor.closed == node.closed == []

    _run(test)


def test_an_abandoned_link_says_nothing() -> None:
    """The other end waits for another client, or for this one."""

    def test(node: End, client: End) -> None:
        line = Line(node, client)
        _settle(line)
        client.wire.abandon()
        client.wire.send(encode(Kind.LOG, b"late"))
        _settle(line)
        assert node.closed == client.closed == []
        assert node.bodies() == []

    _run(test)
