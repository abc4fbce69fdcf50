"""Nodes of pools that are open in another program of this user, or detached: how one is named and reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from skyward.errors import ConfigError, NodeLostError, SkywardError, TransportError, UsageError

if TYPE_CHECKING:
    from skyward.engine.instances.detached_records import DetachedPool
    from skyward.model.instances.machine import SSHAddress
    from skyward.plan.instances.detached_pool import Detached

__all__ = ["NodePlace", "find_node", "split_node"]

PATIENCE = 20.0
"""Seconds for which a machine is dialled."""


@frozen(kw_only=True)
class NodePlace:
    """
    Say how the machine of a node is reached.

    Args:
        name: What messages call the node.
        address: The machine, with the key that logs in there.
    """

    name: str
    address: SSHAddress = field(repr=False)


def split_node(text: str) -> tuple[str, int | None]:
    """
    Return the pool and the node that are typed as `POOL[:NODE]`; None is the head.

    Args:
        text: What is typed.

    Raises:
        UsageError: If it is none.

    >>> split_node("train:3"), split_node("train")
    (('train', 3), ('train', None))
    """
    pool, colon, node = text.partition(":")
    if not pool or (colon and not (node.isascii() and node.isdigit())):
        raise UsageError(f"{text!r} names no node of a pool.", hint="Write POOL, or POOL:NODE as in train:0.")
    return pool, int(node) if colon else None


def find_node(pool: str, node: int | None) -> NodePlace:
    """
    Find a node of an open or a detached pool.

    Args:
        pool: The pool's name or id.
        node: Its index; None for the head.

    Raises:
        ConfigError: If several pools are called so, or the node is a process of this machine.
        SkywardError: If there is no such pool.
        NodeLostError: If the node has no machine at this moment.
        TransportError: If the pool does not answer.
    """
    from skyward.engine.instances.owner_lock import without_client
    from skyward.engine.pool.asked_pools import ask_each

    answers = ask_each("address", pool, node)
    said = [answer for answer in answers if answer.facts]
    left = [about for about in without_client() if pool in (about.pool_id, about.pool_name)]
    if len(said) + len(left) > 1:
        ids = ", ".join([*(answer.pool_id for answer in said), *(about.pool_id for about in left)])
        raise ConfigError(f"Several pools are called {pool!r}: {ids}.", pool=pool, hint="Name one by its id.")
    if said:
        return _open_node(said[0].facts)
    if left:
        return _left_node(left[0], node)
    if silent := [answer for answer in answers if answer.error]:
        raise TransportError(f"Pool {silent[0].pool_id} may be meant. {silent[0].error}", pool=pool)
    raise _unknown(pool)


def _open_node(facts: dict[str, Any]) -> NodePlace:
    """Return the node that an open pool has described."""
    from skyward.model.instances.machine import SSHAddress

    name = f"Node {facts.get('node')} of pool {facts['pool']!r}"
    if "ssh" in facts:
        return NodePlace(name=name, address=SSHAddress(**facts["ssh"]))
    if "local" in facts:
        raise ConfigError(
            f"{name} is a process of this machine.",
            pool=facts["pool"],
            hint="What is typed here runs there already, and its ports are ports of 127.0.0.1.",
        )
    raise NodeLostError(str(facts.get("text", f"{name} cannot be reached.")), pool=facts["pool"])


def _left_node(about: Detached, node: int | None) -> NodePlace:
    """Return a node of a pool that has no client now."""
    from skyward.engine.instances.detached_records import DETACHED
    from skyward.model.instances.machine import SSHAddress

    left: DetachedPool | None = DETACHED.read(about)
    machines = {} if left is None else {each.machine.instance.node: each.machine.instance for each in left.nodes}
    if not machines:
        raise ConfigError(
            f"What is known of the detached pool {about.pool_name!r} cannot be read.", hint="See the log."
        )
    index = min(machines) if node is None else node
    if index not in machines:
        known = ", ".join(map(str, sorted(machines)))
        raise ConfigError(f"Pool {about.pool_name!r} has no node {index}.", hint=f"It has {known}.")
    address = machines[index].address
    assert isinstance(address, SSHAddress)
    return NodePlace(name=f"Node {index} of pool {about.pool_name!r}", address=address)


def _unknown(pool: str) -> SkywardError:
    """Return the error for a pool that is neither open here nor detached."""
    from skyward.engine.instances.owner_lock import without_client
    from skyward.engine.pool.asked_pools import ask_each
    from skyward.model.fields.setting import nearest

    known = [str(answer.facts["pool"]) for answer in ask_each("facts") if "pool" in answer.facts]
    close = nearest(pool, [*known, *(about.pool_name for about in without_client())])
    return SkywardError(
        f"No program of yours on this machine has a pool {pool!r} open, and none is detached.",
        hint=f"Did you mean {close!r}?" if close else "Type: sky top, or sky detached",
    )
