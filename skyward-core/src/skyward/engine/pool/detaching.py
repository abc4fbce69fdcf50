"""Leave an open pool with its calls under way, so that another client goes on with it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import evolve

from skyward.engine.calls.waiters import AnswerCollector, Promise, Waiter
from skyward.engine.instances.detachment import Detachment
from skyward.engine.instances.linger import Linger
from skyward.engine.instances.provider_recipe import ProviderRecipe
from skyward.engine.pool.left_nodes import answers, left_calls, terms
from skyward.errors import ConfigError, UsageError
from skyward.model.fields.setting import lasting
from skyward.model.instances.machine import LocalAddress
from skyward.plan.instances.billing import ENDING_S
from skyward.plan.instances.detached_pool import check_detach, lease_of
from skyward.plan.instances.lingering import LEAST

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.running import Running

__all__ = ["detach_pool"]

SENDING = 30.0
"""Seconds in which all calls have to be sent to nodes, or be returned by them to be sent again."""

_LOOK = 0.01


def detach_pool(running: Running, name: str | None, lease: float | None, idle: float | None) -> str:
    """
    Leave a pool to another client; it is to be closed then.

    Args:
        running: The pool.
        name: What it is attached by; None is the pool's own name.
        lease: Seconds until its machines end; None is its `ttl`.
        idle: Seconds after which a machine ends that has nothing to do; None for all of the lease.

    Returns:
        The pool's id, by which it is attached, too.

    Raises:
        ConfigError: If it could not end by itself, or cannot be written down.
        UsageError: If something under way needs this client.
        ProvisionError: If no node can be left.
    """
    running.engine.run(running.record.pause())
    try:
        detaching = running.engine.run(_prepared(running, name, lease, idle))
        try:
            running.engine.run(_parted(running, detaching))
        except BaseException:
            running.engine.run(detaching.withdraw())
            raise
    except BaseException:
        running.engine.post(running.record.go_on)
        raise
    running.provisioning.linger = running.provisioning.terminator.linger = detaching
    return running.provisioning.pool_id


async def _prepared(running: Running, name: str | None, lease: float | None, idle: float | None) -> Detachment:
    """Check everything, and write down what there is, before anything is changed."""
    provisioning, linger = running.provisioning, running.provisioning.linger
    shells = [shell for shell in running.ready_shells() if not shell.leaving]
    check_detach(
        provisioning.facts,
        pool=running.name,
        ttl=running.spec.ttl,
        volumes=running.spec.volumes,
        local=any(isinstance(shell.instance.address, LocalAddress) for shell in running.instances.shells),
    )
    _check_whole(running, shells)
    _check_calls(running)
    assert isinstance(linger, Linger)
    # One that is left once more has at least what was left of its lease before.
    left = max(running.spec.ttl or 0.0, running.inherited.ends_at - time.time())
    wish = lease_of(lease, left)
    # So that there is something left for the client that attaches it at the last moment.
    seconds = linger.granted(shells, wish, spare=1.2 * ENDING_S)
    if seconds < LEAST:
        raise ConfigError(
            f"Pool {running.name!r} cannot be detached for {wish:g} s: its budget= or timeout= allows {seconds:.0f} s.",
            pool=running.name,
            hint="Raise them.",
        )
    idle = None if idle is None else lasting(idle, "idle")
    detaching = Detachment(linger, evolve(terms(running, name or running.name, seconds), idle=idle), shells)
    await detaching.prepare(left_calls(running, shells), answers(running))
    return detaching


def _check_whole(running: Running, shells: Sequence[NodeShell]) -> None:
    """Refuse a pool of which something would be left that no other client knows."""
    why, hint = "", None
    if not shells:
        why = "no node of it is ready"
    elif running.store.node is not None:
        why = "its collections are in use, which this program leads the nodes to"
    elif running.provisioning.launching.uncertain:
        why = "it is unknown what came of a launch, so that a guardian ends all that it has"
    elif any(shell.blueprint.cluster.pool_id != running.provisioning.pool_id for shell in shells):
        why = "its nodes are of several clouds"
    if secrets := ProviderRecipe.of(running.spec.provider).secrets:
        why = f"{secrets[0]}= of its provider is a secret, which has no place on this computer's disk"
        hint = "Leave it to an environment variable or the provider's own file."
    if why:
        raise ConfigError(f"Pool {running.name!r} cannot be detached: {why}.", pool=running.name, hint=hint)


def _check_calls(running: Running) -> None:
    """Refuse calls that need this client while they run."""
    kinds = {
        "streams": [call for call in running.dispatch.calls if call.streams],
        "calls that take an iterator": [call for call in running.dispatch.calls if call.feeder is not None],
        "items of maps": [
            call for call in running.dispatch.calls if not isinstance(call.sink, (Promise, Waiter, AnswerCollector))
        ],
    }
    for what, calls in kinds.items():
        if calls:
            functions = ", ".join(sorted({f"{call.function.name}()" for call in calls}))
            raise UsageError(
                f"Pool {running.name!r} cannot be detached: {len(calls)} {what} are under way, of {functions}, which "
                "need this program.",
                pool=running.name,
                hint="Wait for them or stop them; `call > pool` and `sky.gather` make calls that can be left.",
            )


async def _parted(running: Running, detaching: Detachment) -> None:
    """Send all calls to the nodes, have those wait for another client, and end the links to them."""
    dispatch = running.dispatch
    dispatch.send_all(wanted=True)
    try:
        async with asyncio.timeout(SENDING):
            while dispatch.unsent:  # noqa: ASYNC110  # several things have to come, and none says so
                await asyncio.sleep(_LOOK)
    except asyncio.CancelledError:
        dispatch.send_all(wanted=False)
        raise
    except TimeoutError:
        dispatch.send_all(wanted=False)
        raise UsageError(
            f"Pool {running.name!r} cannot be detached: {dispatch.unsent} calls could not be sent to a node within "
            f"{SENDING:g} s, such as broadcasts, or calls of classes that wait for others.",
            pool=running.name,
            hint="Wait for them, or stop them.",
        ) from None
    running.sizing.leave()
    await detaching.park()
    # Nothing comes between: what is answered until now is this client's, and the rest the next one's.
    detaching.cut()
    why = f"The pool {running.name!r} was detached; sky.attach({running.provisioning.pool_id!r}) has the result."
    running.inherited.withhold(why)
    calls, unused = left_calls(running, running.ready_shells()), answers(running)
    running.inherited.close(why)
    dispatch.close(why)
    for shell in calls:
        dispatch.remove(shell.seat, why)
    await dispatch.leave(why)
    await detaching.finish(calls, unused)
