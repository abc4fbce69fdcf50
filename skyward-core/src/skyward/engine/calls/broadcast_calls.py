"""Make the calls of a broadcast: one for each rank, all with the same members."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from skyward.engine.calls.call import Call
from skyward.engine.calls.dispatch import Dispatch
from skyward.engine.nodes.member import Member
from skyward.engine.nodes.membership import Membership
from skyward.errors import NodeLostError


def broadcast(
    first: Call,
    sinks: Sequence[Any],
    made: Any,
    dispatch: Dispatch,
    nodes: Iterable[int],
    ranks: int,
    membership: Membership,
) -> None:
    """
    Send a call to every rank of some nodes.

    Args:
        first: The call.
        sinks: One for each rank, or one for all.
        made: Future that gets the calls, or why there are none.
        dispatch: Where the calls go.
        nodes: The nodes that are ready.
        ranks: How many ranks each has.
        membership: Numbers the members.
    """
    there = [dispatch.members[index] for index in nodes if index in dispatch.members]
    # Where all are silent, they are waited for.
    members = [member for member in there if not dispatch.silent.suspected(member)] or there
    if not members:
        empty = NodeLostError("The pool has no ready node to broadcast to.", pool=dispatch.pool)
        made.set_exception(dispatch.refusal or empty)
        return
    calls, places = spread(first, sinks, members, ranks, membership)
    dispatch.submit_group(calls, places)
    made.set_result(calls)


def spread(
    first: Call, sinks: Sequence[Any], members: Sequence[Member], ranks: int, membership: Membership
) -> tuple[list[Call], list[tuple[int, int]]]:
    """
    Make a call for each rank of the members, and send their nodes the members.

    Args:
        first: The call to be made many times, with the number of its broadcast if that is known.
        sinks: One for each rank, or one for all; if there are fewer, the last ranks get no call.
        members: The nodes that take part.
        ranks: How many ranks each has.
        membership: Numbers the members.

    Returns:
        The calls, and for each its node and rank.
    """
    places = [(member.index, rank) for member in members for rank in range(ranks)]
    if len(sinks) > 1:
        places = places[: len(sinks)]
    links = {member.index: member.link for member in members}
    calls: list[Call] = []
    for index, (node, _) in enumerate(places):
        sink = sinks[index] if len(sinks) > 1 else sinks[0]
        call = Call(first.function, first.payload, sink, timeout=first.timeout, streams=first.streams, index=index)
        call.caller, call.cell = first.caller, first.cell
        call.queue_timeout, call.deadline = first.queue_timeout, first.deadline
        call.broadcast = first.broadcast or (calls[0].id if calls else call.id)
        call.trail = None if first.trail is None else first.trail.copy()
        call.members, taking_part = membership.of(node)
        links[node].send_members(call.members, taking_part)
        calls.append(call)
    return calls, places
