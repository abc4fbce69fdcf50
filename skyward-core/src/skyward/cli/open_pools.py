"""The pools that programs of this user have open on this machine, as they say themselves."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from skyward.errors import SkywardError, TransportError

if TYPE_CHECKING:
    from skyward.model.instances.machine import Instance

__all__ = ["machines_of", "open_machines"]


def open_machines(only: Collection[str] = ()) -> tuple[list[Instance], dict[str, SkywardError]]:
    """
    Return the machines that open pools have, processes of this one among them, and which pools do not answer.

    Args:
        only: The names of the providers that are meant; none for all of them.
    """
    from skyward.engine.pool.asked_pools import ask_each

    answers = ask_each("facts")
    silent: dict[str, SkywardError] = {f"pool {one.pool_id}": TransportError(one.error) for one in answers if one.error}
    meant = {name.lower() for name in only}
    found = [instance for one in answers for instance in machines_of(one.facts)]
    return [instance for instance in found if not meant or instance.provider in meant], silent


def machines_of(facts: dict[str, Any]) -> list[Instance]:
    """
    Return the machines that an open pool says that it has.

    Args:
        facts: Its answer; that of another version of Skyward may have none.

    >>> node = {"node": 0, "machine": "node-0", "provider": "local", "state": "ready"}
    >>> [machine.id for machine in machines_of({"pool": "pool", "pool_id": "a1", "nodes": [node]})]
    ['node-0']
    """
    from skyward.model.instances.machine import Instance, InstanceState
    from skyward.model.instances.tags import Tags

    states = {"launching": InstanceState.PENDING, "leaving": InstanceState.ENDING}
    return [
        Instance(
            id=node["machine"],
            node=node["node"],
            provider=node["provider"],
            state=states.get(node["state"], InstanceState.RUNNING),
            instance_type=node.get("type"),
            region=node.get("region"),
            spot=node.get("spot", False),
            hourly_rate=node.get("hourly_rate"),
            launched_at=node.get("launched_at"),
            tags=Tags(
                pool_id=facts["pool_id"], pool_name=facts["pool"], node=node["node"], owner=facts.get("owner", "")
            ),
        )
        for node in facts.get("nodes", ())
    ]
