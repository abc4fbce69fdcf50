"""Frames of a node about calls that it runs."""

from __future__ import annotations

from skyward.engine.calls.answer import Answer
from skyward.engine.calls.call import Call
from skyward.engine.nodes.member import Member
from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind
from skyward.link.messages import CALL, CREDIT, ITEM
from skyward.link.order import sizes_of
from skyward.link.payload import Payload, decode

__all__ = ["announced", "answer_of", "take_credit", "take_item"]


def announced(call: Call | None, member: Member | None, frame: Frame, *, over: bool) -> bool:
    """
    Return whether buffers are wanted that a node is about to send for a call.

    Args:
        call: The call that the frame names; None if there is no such call.
        member: The node; None if it takes no calls.
        frame: The frame without its buffers.
        over: Whether the node may not know yet that there is no such call.

    Raises:
        ProtocolError: If it is about to send something that it was not asked for.
    """
    if call is not None and member is not None and call.on == member.index:
        if frame.kind == Kind.ITEM:
            call.check_item()
        return True
    if member is not None and not over:
        (number,) = CALL.unpack_from(frame.body)
        raise ProtocolError(f"A node announced {sum(sizes_of(frame))} bytes for call {number}, which it was not given.")
    return False


def take_item(call: Call | None, member: Member, frame: Frame, fds: tuple[int, ...]) -> None:
    """Take an item of a call's stream; one of a call that the node does not run is dropped."""
    payload = decode(frame.body, ITEM.size, fds, member.trust, member.there)
    if call is not None and call.on == member.index:
        call.take_item(payload)


def take_credit(call: Call | None, member: Member, frame: Frame) -> None:
    """Take a node's leave to send more items of an input stream."""
    _, stream, items = CREDIT.unpack(frame.body)
    if call is not None and call.on == member.index and call.feeder is not None:
        call.feeder.acknowledged(stream, items)


def answer_of(
    call: Call,
    member: Member,
    status: int,
    payload: Payload | None,
    text: bytes,
    seconds: float,
    pool: str,
    began: float,
) -> Answer:
    """
    Return how a node answered a call.

    Args:
        call: The call.
        member: The node.
        status: How it ended.
        payload: The result, if it is one.
        text: The failure's bytes or JSON.
        seconds: How long it ran.
        pool: The pool's name.
        began: When it began, by the node's clock.
    """
    return Answer(
        status,
        payload,
        text,
        where=member.where,
        function=call.function.name,
        seconds=seconds,
        node=member.node,
        pool=pool,
        trust=member.trust,
        began=began,
    )
