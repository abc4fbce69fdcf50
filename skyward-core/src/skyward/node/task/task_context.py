"""
The context of a running call: what it knows, and which calls run in this process.

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
    "current",
    "current_call_id",
    "emit_from_task",
    "has_context",
    "in_task",
    "keep_own",
    "owner",
    "put_nowhere",
    "reset_context",
    "running",
    "set_context",
    "store_nowhere",
    "watchers",
]


def _emit_nowhere(event: object) -> None:
    from skyward.errors import UsageError

    raise UsageError(f"This call has no way to a client, so {event!r} cannot be emitted.")


def put_nowhere(value: object) -> Any:
    """Raise, because no node is there that could keep a value."""
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

    >>> from skyward.node.task.runtime import instance_info, is_head
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
        "carried",
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
        put: Callable[[Any], Any] = put_nowhere,
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
        self.carried: dict[str, str] = {}
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
