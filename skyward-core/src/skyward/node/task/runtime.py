"""
What a running function knows about its own call, and about the place it runs in.

The context of a call is a context variable, so calls that share a process do not see each other's, and what
`asyncio` and `contextvars.copy_context` start inherits it.
A plain thread begins without a context.
It counts as part of the call that runs in its process; where several run at once it has the place as the
newest of them sees it, and what it prints belongs to none, because a line under a wrong name is worse than one
without a name.
"""

from __future__ import annotations

from contextvars import ContextVar, Token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from skyward.model.instances.instance import InstanceInfo

__all__ = [
    "TaskContext",
    "abandon",
    "current",
    "current_accelerator",
    "current_call_id",
    "emit_from_task",
    "has_context",
    "in_task",
    "instance_info",
    "is_head",
    "keep_own",
    "owner",
    "put_from_task",
    "reset_context",
    "retire",
    "running",
    "store_nowhere",
    "set_context",
    "watchers",
]


def _emit_nowhere(event: object) -> None:
    from skyward.errors import UsageError

    raise UsageError(f"This call has no way to a client, so {event!r} cannot be emitted.")


def _put_nowhere(value: object) -> Any:
    from skyward.errors import NoPoolError

    raise NoPoolError(
        "`sky.put` is called in code that runs on a node, but not in a task, and no pool is open there.",
        hint="Return the value, and put it in the program if more than one call needs it.",
    )


def store_nowhere() -> Any:
    """Raise, because the call cannot ask its client where the store of the collections is."""
    from skyward.errors import UsageError

    raise UsageError("This call has no way to a client, so there is no store for its collections.")


def _abandon_nowhere(error: BaseException) -> None:
    raise error


def _retire_nowhere() -> None:
    return


class TaskContext:
    """
    Hold what is known about one running call.

    Args:
        call_id: The call's id, above 0.
        function: Name of the function.
        facts: What `instance_info` reports about this node and worker, whichever the members are.
        membership: What it reports about the members: totals, peers, the head.
        emit: Sends an event to the client.
        abandon: Ends the call and its process with an error.
        retire: Has the process replaced once the call is answered.
        held: Whether a process in this one's place has kept what the call needs.
        keeping: What has the client keep files; None where there is no client.
        store: Returns where the store of the pool's collections is.
        data: Whether the values of its collections are opened as data.

    >>> token = set_context(TaskContext(call_id=7, function="train", facts={"node": 1}, membership={"total_nodes": 2}))
    >>> current_call_id(), instance_info().node, is_head()
    (7, 1, False)
    >>> reset_context(token)
    >>> current_call_id(), is_head()
    (0, True)
    """

    __slots__ = (
        "_info",
        "abandon",
        "at_end",
        "call_id",
        "collections",
        "data",
        "emit",
        "facts",
        "function",
        "held",
        "keeping",
        "membership",
        "put",
        "retire",
        "routes",
        "store",
    )

    def __init__(
        self,
        *,
        call_id: int,
        function: str = "",
        facts: dict[str, Any],
        membership: dict[str, Any],
        emit: Callable[[Any], None] = _emit_nowhere,
        abandon: Callable[[BaseException], None] = _abandon_nowhere,
        retire: Callable[[], None] = _retire_nowhere,
        held: bool = False,
        put: Callable[[Any], Any] = _put_nowhere,
        keeping: Any = None,
        store: Callable[[], Any] = store_nowhere,
        data: bool = False,
    ) -> None:
        self.call_id = call_id
        self.function = function
        self.facts = facts
        self.membership = membership
        self.emit = emit
        self.abandon = abandon
        self.retire = retire
        self.held = held
        self.put = put
        self.keeping = keeping
        self.store = store
        self.data = data
        self.collections: Any = None
        self.at_end: set[Callable[[int], None]] = set()
        self.routes: list[tuple[Any, Any]] = []
        self._info: InstanceInfo | None = None

    def info(self) -> InstanceInfo:
        """Describe the place that the call runs in."""
        if self._info is None:
            self._info = _PLACE.info({**self.facts, **self.membership})
        return self._info


class _RankPlace:
    """Hold what calls were given last, because most calls in a row are given the same, and peers may be many."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last: tuple[dict[str, Any], InstanceInfo] | None = None

    def info(self, fields: dict[str, Any]) -> InstanceInfo:
        """
        Describe a place.

        Args:
            fields: What `InstanceInfo` is made of.
        """
        broadcast = fields.pop("broadcast", 0)
        last = self._last
        # The version first: peers that are yet to be looked up would have to be, to be compared.
        if last is None or last[0].get("version") != fields.get("version") or last[0] != fields:
            from skyward.model.instances.instance import InstanceInfo

            last = self._last = fields, InstanceInfo.from_dict(fields)
        if not broadcast:
            return last[1]
        from attrs import evolve

        return evolve(last[1], broadcast=broadcast)


_PLACE = _RankPlace()


_context: ContextVar[TaskContext | None] = ContextVar("skyward_task", default=None)
_running: dict[int, TaskContext] = {}

watchers: set[Callable[[], None]] = set()
"""Called when a call has begun or ended in this process."""


def set_context(context: TaskContext) -> Token[TaskContext | None]:
    """Begin a call in this thread; give what `reset_context` takes."""
    _running[context.call_id] = context
    token = _context.set(context)
    if watchers:
        _notify()
    return token


def reset_context(token: Token[TaskContext | None]) -> None:
    """End the call that `set_context` began, and run what is to run at its end."""
    context = _context.get()
    _context.reset(token)
    if context is not None:
        _running.pop(context.call_id, None)
        if watchers:
            _notify()
        for end in tuple(context.at_end):
            try:
                end(context.call_id)
            except OSError:
                # Nothing reads any more; the result still goes its own way.
                continue


def _notify() -> None:
    for watcher in tuple(watchers):
        watcher()


def running() -> tuple[TaskContext, ...]:
    """Return the contexts of the calls that run in this process, in the order of their beginnings."""
    return tuple(_running.values())


def keep_own() -> None:
    """Forget the calls of other threads in a process that was forked off: none of them runs there."""
    own = owner()
    _running.clear()
    if own is not None:
        _running[own.call_id] = own


def has_context() -> bool:
    """
    Return whether the calling thread knows its call for certain, and not because only one runs.

    >>> has_context()
    False
    """
    return _context.get() is not None


def owner() -> TaskContext | None:
    """Return the context of the call that the calling thread works for; None where that is not certain."""
    context = _context.get()
    if context is None and _running:
        # A dict may grow under an iteration when another thread begins a call; a copy is made in one step.
        running = tuple(_running.values())
        return running[0] if len(running) == 1 else None
    return context


def current() -> TaskContext | None:
    """Return the context of the call that the calling thread works for, or most probably does."""
    context = _context.get()
    if context is None and _running:
        running = tuple(_running.values())
        return running[-1] if running else None
    return context


def current_call_id() -> int:
    """Name the call that what this thread prints belongs to; 0 if that is not known."""
    context = owner()
    return context.call_id if context is not None else 0


def in_task() -> bool:
    """
    Return whether the calling thread works for a call on a node.

    >>> in_task()
    False
    """
    return current() is not None


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


def emit_from_task(event: object) -> None:
    """
    Send an event to the client of the call that the calling thread works for.

    Args:
        event: Anything that can be pickled.

    Raises:
        UsageError: If called outside a task.
    """
    context = current()
    if context is None:
        from skyward.errors import UsageError

        raise UsageError(f"There is no task that could send {event!r} to its client.")
    context.emit(event)


def put_from_task(value: object) -> Any:
    """
    Keep a value at the node of the call that this code is part of, and return the Ref that stands for it.

    Raises:
        NoPoolError: If it is part of none.
        RefError: If the node has no memory for it.
    """
    context = owner()
    return (_put_nowhere if context is None else context.put)(value)


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
