"""Take over the nodes of a detached pool: claim each at its machine, for one client alone."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.blocking import in_thread
from skyward.engine.calls.batches import all_of
from skyward.engine.calls.call import number_after
from skyward.engine.instances.adopted import Adopted
from skyward.engine.instances.call_journal import JournalledCalls, read_calls
from skyward.engine.instances.detached_records import DETACHED, DetachedNode, Inheritance, LeftCall
from skyward.engine.instances.kept_answers import kept_answers
from skyward.engine.instances.owner_lock import acquire, release
from skyward.engine.instances.rented import Resumed
from skyward.engine.nodes.lingering_host import Claim, claim
from skyward.engine.source.bundle import runtime_bundle
from skyward.errors import ConfigError, NodeLostError
from skyward.link.frames import Frame
from skyward.model.instances.key_pair import KeyPair
from skyward.model.instances.machine import SSHAddress
from skyward.plan.instances.detached_pool import Detached
from skyward.plan.instances.lingering import claim_within
from skyward.ssh.visits import KeptVisit

if TYPE_CHECKING:
    from skyward.engine.instances.detached_records import DetachedPool
    from skyward.model.spec.spec import Spec

__all__ = ["take_over"]

UNWRITTEN_CALLS = 1 << 32
"""Ids beyond the last one that a dead client wrote down; more than it can have given to calls since then."""

UNWRITTEN_MEMBERS = 1000
"""Versions of the members beyond the last one that a dead client wrote down."""

_NODE_GONE = "its node was lost while its client died"

_log = logging.getLogger(__name__)


async def take_over(about: Detached, spec: Spec) -> Adopted:
    """
    Acquire the nodes of a detached pool.

    Args:
        about: Which pool.
        spec: What it was made of.

    Returns:
        Those that answer; the calls of the others are lost.

    Raises:
        ConfigError: If another client has it, or it cannot be read.
        NodeLostError: If none of its nodes answers.
    """
    if about.runtime != (await in_thread(runtime_bundle)).digest:
        raise ConfigError(
            f"Pool {about.pool_name!r} was detached by another version of Skyward, and its nodes run that one.",
            pool=about.pool_name,
            hint="Attach it with that version, or end it: sky down " + about.pool_id,
        )
    if not await in_thread(acquire, about.pool_id):
        raise _held(about)
    try:
        return await _taken_over(about, spec)
    except BaseException:
        release(about.pool_id, over=False)
        raise


async def _taken_over(about: Detached, spec: Spec) -> Adopted:
    left: DetachedPool | None = await in_thread(DETACHED.read, about)
    if left is None:
        raise _held(about)
    if about.owned:
        left = _with_calls(left, await in_thread(read_calls, about.pool_id))
    visits = KeptVisit()
    # Of several clients the one that has the first node has them all.
    claims: list[tuple[DetachedNode, Claim]] = []
    waiting = list(left.nodes)
    within = claim_within(ttl=left.spec.ttl or 0.0, bootstrap_timeout=0.0)

    async def ask(node: DetachedNode) -> None:
        address = node.machine.instance.address
        assert isinstance(address, SSHAddress)
        claims.append((node, await claim(address, node.machine.mark, within, visits)))

    while waiting and not any(came == "claimed" for _, came in claims):
        await ask(waiting.pop(0))
        if claims[-1][1] == "taken":
            break
    else:
        await all_of(map(ask, waiting))
    got = [node for node, came in claims if came == "claimed"]
    if not got:
        await visits.close()
        if any(came == "taken" for _, came in claims):
            raise _held(about)
        raise NodeLostError(
            f"No machine of the detached pool {about.pool_name!r} answers: {', '.join(about.machines)}.",
            pool=about.pool_name,
            hint="Try again; if they are gone, so are the results that were on them.",
        )
    lost = [
        evolve(call, lost=f"its machine {node.machine.instance.id} did not answer when the pool was attached")
        for node in left.nodes
        if node not in got
        for call in node.calls
    ]
    answers = await in_thread(kept_answers, about.pool_id)
    number_after(left.last_call)
    _log.info("detached.attached pool=%s machines=%d lost=%d", about.pool_id, len(got), len(lost))
    return Adopted(
        pool_id=about.pool_id,
        key=KeyPair.of(left.private_key),
        spec=spec,
        machines=tuple(node.machine for node in got),
        shared=left.shared,
        visits=visits,
        resumed={node.machine.mark: _resumed(node) for node in got},
        inheritance=evolve(_inheritance(got, (*left.lost, *lost), left.last_call, answers), owned=about.owned),
        # A client that dies may not have written down its last ones.
        members=left.members + (UNWRITTEN_MEMBERS if about.owned else 0),
        ends_at=about.ends_at,
    )


def _with_calls(left: DetachedPool, calls: JournalledCalls) -> DetachedPool:
    """Return a pool whose client died with its calls, as the journal has them."""
    there = {node.machine.instance.node for node in left.nodes}
    gone = [evolve(call, lost=_NODE_GONE) for node in calls.nodes if node not in there for call in calls.nodes[node]]
    nodes = [evolve(node, calls=calls.nodes.get(node.machine.instance.node, ())) for node in left.nodes]
    # What it made after the last snapshot has ids beyond those in it.
    last = max(left.last_call, calls.last) + UNWRITTEN_CALLS
    return evolve(left, nodes=tuple(nodes), lost=(*left.lost, *gone, *calls.unsent), last_call=last)


def _resumed(node: DetachedNode) -> Resumed:
    return Resumed(mark=node.machine.mark, before=node.sessions, session=secrets.token_hex(16))


def _inheritance(
    nodes: list[DetachedNode],
    lost: tuple[LeftCall, ...],
    last_call: int,
    answers: Mapping[int, tuple[Frame, list[bytes]]],
) -> Inheritance:
    calls = {node.machine.instance.node: node.calls for node in nodes}
    # What this computer has of nodes that are lost is as good as what it has of others.
    first = nodes[0].machine.instance.node
    calls[first] = (*calls[first], *(evolve(call, lost="") for call in lost if call.id in answers))
    lost = tuple(call for call in lost if call.id not in answers)
    return Inheritance(nodes=calls, lost=lost, last_call=last_call, answers=answers)


def _held(about: Detached) -> ConfigError:
    if about.owned:
        return ConfigError(
            f"The pool {about.pool_name!r} ({about.pool_id}) has a client that lives, or has just been ended.",
            pool=about.pool_name,
            hint="One client has a pool at a time: end that one, or have it detach.",
        )
    return ConfigError(
        f"The detached pool {about.pool_name!r} ({about.pool_id}) is attached by another client already, or has just "
        "ended.",
        pool=about.pool_name,
        hint="One client has a pool at a time: end that one, or have it detach.",
    )
