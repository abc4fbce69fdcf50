"""
What a running function may ask about its own call, and about the place it runs in.
"""

from __future__ import annotations

from skyward.node.task.task_context import current, owner, put_nowhere

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from skyward.model.instances.instance import InstanceInfo

__all__ = [
    "abandon",
    "current_accelerator",
    "instance_info",
    "is_head",
    "put_from_task",
    "rendezvous_secret",
    "retire",
]


def instance_info() -> InstanceInfo:
    """
    Return where in the pool this runs: node, rank, totals, and the machine.

    Outside a task, as in `f.local(...)`, it describes one node of one.

    >>> info = instance_info()
    >>> info.node, info.total_nodes, info.is_head
    (0, 1, True)
    """
    context = current()
    if context is not None:
        return context.info()
    from skyward.model.instances.instance import InstanceInfo

    return InstanceInfo()


def rendezvous_secret() -> str:
    """
    Return what the ranks of the pool know each other by; nothing outside a task.

    Raises:
        UsageError: If the pool's nodes are to work by themselves.
    """
    context = current()
    if context is None:
        return ""
    secret = str(context.membership.get("secret", ""))
    if not secret and "secret" in context.membership:
        from skyward.errors import UsageError

        raise UsageError(
            "The nodes of this pool work by themselves, because it was opened with cluster=False.",
            hint="Leave cluster= out to have their ranks meet.",
        )
    return secret


def is_head(info: InstanceInfo | None = None) -> bool:
    """
    Return whether this is the first of all ranks; exactly one is.

    Args:
        info: What `instance_info` gave; asked for when left out.

    >>> is_head()
    True
    """
    return (instance_info() if info is None else info).is_head


def current_accelerator() -> str | None:
    """
    Name the type of the accelerators that this function has, such as `"H100"`; None on a node without any.

    Raises:
        UsageError: If called outside a task, where it is not known.
    """
    context = current()
    if context is None:
        from skyward.errors import UsageError

        raise UsageError(
            "current_accelerator() was called outside a task, and nothing is known about this machine's accelerators.",
            hint="Call it in a function that runs on a pool; `instance_info().accelerator` is None outside a task.",
        )
    accelerator = context.info().accelerator
    return (accelerator.type or None) if accelerator is not None else None


def put_from_task(value: object) -> Any:
    """
    Keep a value at the node of the call that this code is part of, and return the Ref that stands for it.

    Raises:
        NoPoolError: If it is part of none.
        RefError: If the node has no memory for it.
    """
    context = owner()
    return (put_nowhere if context is None else context.put)(value)


def abandon(error: BaseException) -> None:
    """
    End the call that the calling thread works for with an error, and its worker process, which is replaced.

    For threads that watch a call which is stuck where no exception reaches it.
    Outside a task, the error is raised.

    Args:
        error: What the call raises at the client.

    >>> abandon(TimeoutError("stuck"))
    Traceback (most recent call last):
    TimeoutError: stuck
    """
    context = current()
    if context is None:
        raise error
    context.abandon(error)


def retire() -> None:
    """
    Replace the worker process of the calling thread's call by a fresh one, once that call is answered.

    For libraries whose state in a process cannot be made good again.
    Other calls that run in the process are run to their end; outside a task nothing happens.

    >>> retire()
    """
    context = current()
    if context is not None:
        context.retire()
