"""
Callbacks and events from the user's side: `compose`, `use_callback`, `emit`.

A callback of `use_callback` belongs to the context it was given in, as pools do.
It receives the events of the pools that are open there and those that are opened inside, until its block ends.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import time

from attrs import define, field

from skyward.engine.events.event_dispatcher import CURRENT, Dispatcher
from skyward.engine.events.subscription import check_handler
from skyward.errors import UsageError
from skyward.model.events.event import Callback, SkywardEvent

__all__ = ["Dispatcher", "compose", "emit", "enter", "leave", "use_callback"]

_log = logging.getLogger(__name__)

# How long the end of `use_callback` waits for the delivery of what happened inside it.
_FLUSH_S = 5.0


@define(eq=False)
class _Use:
    """Hold a callback that is in use, and its subscriptions to the pools of its context."""

    callback: Callback
    joined: list[tuple[Dispatcher, Callable[[], None]]] = field(factory=list)
    over: bool = False

    def join(self, dispatcher: Dispatcher) -> None:
        """Subscribe to the events of a pool."""
        if not self.over:
            self.joined.append((dispatcher, dispatcher.subscribe(SkywardEvent, self.callback)))

    def end(self) -> None:
        """Receive what has happened until now, and unsubscribe."""
        self.over = True
        for dispatcher, cancel in self.joined:
            dispatcher.flush(_FLUSH_S)
            cancel()


_IN_USE: ContextVar[tuple[_Use, ...]] = ContextVar("skyward_callbacks", default=())


def compose(*callbacks: Callback) -> Callback:
    """
    Merge callbacks into one that calls them in order.

    An event that one of them returns takes the event's place for those after it; None leaves it as it is.

    Args:
        callbacks: Functions that take an event.

    Returns:
        A callback; it returns the event as it was changed last, or None if it was not changed.

    >>> import attrs
    >>> from skyward.model.events.event import Log
    >>> shout = compose(lambda event: attrs.evolve(event, line=event.line.upper()), lambda event: None)
    >>> shout(Log(line="hello", node=0)).line
    'HELLO'
    """

    def composed(event: SkywardEvent) -> SkywardEvent | None:
        changed: SkywardEvent | None = None
        for callback in callbacks:
            returned = callback(event)
            if isinstance(returned, SkywardEvent):
                event = changed = returned
        return changed

    return composed


@contextmanager
def use_callback(callback: Callback) -> Iterator[None]:
    """
    Subscribe a callback to all events of this context's pools inside a `with` block.

    These are the pools that are open and those that are opened inside.
    The end of the block waits up to five seconds until what happened inside it has been delivered.

    Args:
        callback: Called with each event, in the dispatcher's thread of its pool.

    Raises:
        ConfigError: The callback cannot be called or is a coroutine function.
    """
    check_handler(callback)
    use = _Use(callback)
    for dispatcher in CURRENT.get():
        use.join(dispatcher)
    _IN_USE.set((*_IN_USE.get(), use))
    try:
        yield
    finally:
        _IN_USE.set(tuple(one for one in _IN_USE.get() if one is not use))
        use.end()


def enter(dispatcher: Dispatcher) -> None:
    """
    Make a pool's dispatcher the one of this context, and subscribe the callbacks in use to it.

    Args:
        dispatcher: The pool's; nothing has been published to it yet.
    """
    for use in _IN_USE.get():
        use.join(dispatcher)
    CURRENT.set((*CURRENT.get(), dispatcher))


def leave(dispatcher: Dispatcher) -> None:
    """
    Take a pool's dispatcher out of this context; one that is not in it is passed over.

    Args:
        dispatcher: The pool's.
    """
    # By identity and not by token: a pool may be left in another context than it was entered in.
    CURRENT.set(tuple(one for one in CURRENT.get() if one is not dispatcher))


def emit(event: SkywardEvent) -> None:
    """
    Send an event to the handlers of the current pool.

    In a task it travels to the client first, where the pool that runs the task delivers it.
    Where no pool is open, the callbacks in use are called at once, in this thread.

    Args:
        event: One of Skyward's or of your own, which extends `SkywardEvent` and can be pickled.

    Raises:
        UsageError: It is no event.
    """
    if not isinstance(event, SkywardEvent):
        raise UsageError(
            f"emit takes an event, not {event!r}.", hint="Have its class extend sky.SkywardEvent, and pass an instance."
        )
    _stamp(event)
    # A worker has loaded this module before it runs a task; on a client it may never be needed.
    task_context = sys.modules.get("skyward.node.task.task_context")
    if task_context is not None and task_context.in_task():
        task_context.emit_from_task(event)
        return
    # A pool may have been closed in another context than it was opened in.
    if pools := [pool for pool in CURRENT.get() if not pool.closed]:
        pools[-1].publish(event)
        return
    for use in _IN_USE.get():
        try:
            use.callback(event)
        except Exception:
            _log.exception("callback.failed callback=%r event=%s", use.callback, event)


def _stamp(event: SkywardEvent) -> None:
    """Set what a subclass with a constructor of its own left unset."""
    for name, value in (("at", time()), ("instance", None)):
        if not hasattr(event, name):
            object.__setattr__(event, name, value)
