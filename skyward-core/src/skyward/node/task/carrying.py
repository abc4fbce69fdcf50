"""
What follows a call to its node: a text that a plugin on the client has sent along.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Carried", "carried"]


class Carried(NamedTuple):
    """
    Hold what a call brings along for a plugin.

    Args:
        text: What `Follower.submitted` returned.
        task: Number of the call, the same for all its attempts.
        attempt: Number of the attempt, as `CallTimes` has it on the client.
        broadcast: Number of the broadcast that the call is part of; 0 for another one.
    """

    text: str
    task: int
    attempt: int
    broadcast: int


def carried(plugin: str) -> Carried | None:
    """
    Return what the running call brings along for a plugin; None outside a task, or where it brings nothing.

    Args:
        plugin: The plugin's name.

    >>> carried("otel") is None
    True
    """
    from skyward.link.messages import task_of
    from skyward.node.task.task_context import owner

    context = owner()
    if context is None or plugin not in context.carried:
        return None
    attempt = context.call_id
    return Carried(context.carried[plugin], task_of(attempt), attempt, int(context.membership.get("broadcast", 0)))
