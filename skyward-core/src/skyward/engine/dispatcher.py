"""
Delivery of events to handlers: one thread, in order, bounded, never on the loop.

What happens is published by any thread and costs it about a microsecond.
A handler may be slow; what then happens depends on what is waiting:

- measurements (`Metric`, `Metrics`) are dropped first, the oldest first;
- then events that come with every task (`TaskStarted`, `TaskCompleted`, `Progress`), the oldest first;
- log lines and everything else are never dropped: `publish` returns False while too much waits, and what makes
  such events is expected to stop until `on_drained` calls back.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from time import monotonic
from typing import Any, TypeAlias, TypeVar

from attrs import define, field, frozen

from skyward.engine.event_weight import KEPT, MEASUREMENT, TASK, rank as rank_of, weight
from skyward.errors import ConfigError
from skyward.link.emitted import class_name
from skyward.model.event import ALL, Log, SkywardEvent
from skyward.model.setting import nearest

__all__ = ["CURRENT", "Dispatcher", "check_handler"]

E = TypeVar("E", bound=SkywardEvent)
Handler: TypeAlias = Callable[[Any], object]

CURRENT: ContextVar[tuple[Dispatcher, ...]] = ContextVar("skyward_dispatchers", default=())
"""The dispatchers of the pools that are open in this context, the innermost last."""

_log = logging.getLogger(__name__)

# Waking the thread costs more than delivering an event, so while events come thick it is woken this often at most.
_NAP_S = 0.005
_BATCH = 128
_WARN_EVERY_S = 10.0


@define(eq=False)
class _Subscription:
    """Hold a handler and the types it was given for."""

    types: tuple[type[SkywardEvent], ...]
    handler: Handler
    own: bool = False
    failed: bool = False

    def deliver(self, event: SkywardEvent) -> None:
        """Call the handler, and log the first time that it raises."""
        try:
            self.handler(event)
        except BaseException:  # SystemExit too: a handler never breaks the pool
            if not self.failed:
                self.failed = True
                _log.exception(
                    "handler.failed handler=%r event=%s: later failures are passed over", self.handler, event
                )


@frozen
class _Route:
    """Hold who hears one type of event, and what becomes of it when too much waits."""

    heard_by: tuple[_Subscription, ...]
    rank: int


@define(eq=False)
class _Mark:
    """Be reached when everything published before it has been delivered."""

    reached: threading.Event = field(factory=threading.Event)


class Dispatcher:
    """
    Deliver the events of one pool to its handlers.

    The thread starts with the first event that has a handler, so a pool that is never opened has none.

    Args:
        limit: How many events may wait; a log line counts once more for each 256 characters of it.
        name: Name of the thread.

    >>> from skyward.model.event import NodeReady
    >>> seen = []
    >>> dispatcher = Dispatcher()
    >>> cancel = dispatcher.subscribe(NodeReady, seen.append)
    >>> dispatcher.publish(NodeReady(node=3, at=0.0))
    True
    >>> dispatcher.close()
    True
    >>> seen
    [NodeReady(at=0.0, instance=None, node=3)]
    """

    def __init__(self, *, limit: int = 100_000, name: str = "skyward-events") -> None:
        self._limit = limit
        self._high = limit * 4 // 5
        self._low = limit // 2
        self._name = name
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._subscriptions: tuple[_Subscription, ...] = ()
        self._routes: dict[type, _Route] = {}
        # One queue a rank; the number says in which order the events of all of them came.
        self._queues: tuple[deque[tuple[int, Any]], ...] = (deque(), deque(), deque())
        self._number = 0
        self._lines = [0, 0]
        self._weight = 0
        self._pressed = False
        self._drained: tuple[Callable[[], object], ...] = ()
        self._dropped = [0, 0]
        self._reported = [0, 0]
        self._reported_at = float("-inf")
        self._idle = False
        self._woken_at = float("-inf")
        self._closing = False
        self._ended = False
        self._abandoned = False
        self._thread: threading.Thread | None = None

    def subscribe(
        self, event_type: type[E] | tuple[type[SkywardEvent], ...], handler: Callable[[E], object], *, own: bool = False
    ) -> Callable[[], None]:
        """
        Have a handler called for each event of a type, in the dispatcher's thread.

        Args:
            event_type: A class of events, whose subclasses count too, or several of them.
            handler: Gets the event; what it returns is ignored.
            own: Whether it is one of Skyward's, for which no pickle of a node's is opened.

        Returns:
            A function that ends the subscription.

        Raises:
            ConfigError: The type is none of events, or the handler cannot be called or is a coroutine function.
        """
        types = event_type if isinstance(event_type, tuple) else (event_type,)
        for one in types:
            _check_type(one)
        check_handler(handler)
        subscription = _Subscription(types, handler, own)
        with self._lock:
            self._subscriptions = (*self._subscriptions, subscription)
            self._routes = {}

        def cancel() -> None:
            with self._lock:
                self._subscriptions = tuple(one for one in self._subscriptions if one is not subscription)
                self._routes = {}

        return cancel

    def wants(self, event_type: type[SkywardEvent]) -> bool:
        """Return whether an event of this very type would reach a handler."""
        return bool((self._routes.get(event_type) or self._route(event_type)).heard_by)

    def asks(self, names: Iterable[str]) -> bool:
        """
        Return whether a handler of the user's was given for one of some classes.

        Args:
            names: What the classes are called, as `class_name` does.
        """
        called = set(names)
        return any(class_name(kind) in called for one in self._subscriptions if not one.own for kind in one.types)

    def publish(self, event: SkywardEvent) -> bool:
        """
        Queue an event for delivery without waiting; any thread may call this.

        Args:
            event: What happened.

        Returns:
            False while so much waits that the caller should make no more of it until `on_drained` calls back.
            The event itself is taken all the same.
        """
        kind = type(event)
        route = self._routes.get(kind) or self._route(kind)
        if not route.heard_by:
            return not self._pressed
        rank = route.rank
        with self._lock:
            if self._closing:
                return True
            while self._weight + len(self._queues[MEASUREMENT]) >= self._limit:
                if self._drop_one(rank):
                    continue
                if rank == KEPT:
                    break
                self._dropped[rank] += 1
                return not self._pressed
            # Measurements give way to everything else, so they hold nothing up.
            if kind is Log:
                self._lines[0] += 1
            if rank != MEASUREMENT:
                self._weight += weight(event)
                self._pressed = self._pressed or self._weight >= self._high
            self._put(rank, event)
            return not self._pressed

    @property
    def closed(self) -> bool:
        """
        Tell whether it takes no more events.
        """
        return self._closing

    @property
    def pressure(self) -> bool:
        """Tell whether so much waits that no more log lines and tasks should be made."""
        return self._pressed

    @property
    def lines_waiting(self) -> bool:
        """Tell whether a line that was printed on a node has not reached every handler."""
        taken, delivered = self._lines
        return taken != delivered

    @property
    def dropped(self) -> int:
        """Return how many events have been dropped."""
        return sum(self._dropped)

    def on_drained(self, callback: Callable[[], object]) -> None:
        """
        Have a function called whenever the pressure has gone.

        Args:
            callback: Called in the dispatcher's thread, so it should only hand the word on.
        """
        with self._lock:
            self._drained = (*self._drained, callback)

    def flush(self, timeout: float | None = None) -> bool:
        """
        Wait until everything published so far has been delivered.

        Args:
            timeout: Longest wait, in seconds; None waits as long as it takes.

        Returns:
            Whether it has been delivered; a handler, which runs in the dispatcher's thread, gets False at once.
        """
        mark = _Mark()
        with self._lock:
            if self._thread is None or self._ended or self._abandoned:
                return not self._abandoned
            if self._thread is threading.current_thread():
                return False
            self._put(KEPT, mark)
            self._ready.notify()
        return mark.reached.wait(timeout) and not self._abandoned

    def close(self, timeout: float | None = 5.0) -> bool:
        """
        Deliver what waits, then end the thread; closing again does nothing.

        Args:
            timeout: Longest wait, in seconds; what has not been delivered then is given up.

        Returns:
            Whether everything was delivered.
        """
        with self._lock:
            self._closing = True
            self._ready.notify()
            thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        if not thread.is_alive():
            return True
        with self._lock:
            # The handler that runs cannot be stopped; this makes it the last one.
            first, self._abandoned = not self._abandoned, True
            waiting = sum(map(len, self._queues))
            # A thread that waits in `flush` is let go by the marks, which stay.
            for queue in self._queues:
                marks = [entry for entry in queue if isinstance(entry[1], _Mark)]
                queue.clear()
                queue.extend(marks)
        if first:
            _log.warning("events.abandoned waiting=%d: a handler still ran after %s s", waiting, timeout)
        return False

    def _route(self, kind: type) -> _Route:
        with self._lock:
            heard_by = tuple(one for one in self._subscriptions if issubclass(kind, one.types))
            route = self._routes[kind] = _Route(heard_by, rank_of(kind))
        return route

    def _put(self, rank: int, item: SkywardEvent | _Mark) -> None:
        """Queue something and see to it that the thread notices; the lock is held."""
        self._number += 1
        self._queues[rank].append((self._number, item))
        if self._idle:
            self._idle = False
            self._ready.notify()
        elif self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()

    def _drop_one(self, rank: int) -> bool:
        """Drop the oldest event that matters no more than one of this rank, if there is one; the lock is held."""
        for less in range(min(rank, TASK) + 1):
            if self._queues[less]:
                event = self._queues[less].popleft()[1]
                self._weight -= weight(event) if less != MEASUREMENT else 0
                self._dropped[less] += 1
                return True
        return False

    def _run(self) -> None:
        # What a handler emits goes to the handlers of the same pool.
        CURRENT.set((self,))
        while batch := self._next():
            for item in batch:
                self._deliver(item)
            if self._pressed and self._weight < self._low:
                self._relieve()
            if self._reported != self._dropped and monotonic() - self._reported_at > _WARN_EVERY_S:
                self._report()
        if self._reported != self._dropped:
            self._report()

    def _next(self) -> list[Any]:
        """Wait for events and return them in the order they came; none when the dispatcher was closed."""
        with self._lock:
            if batch := self._take():
                return batch
            nap = self._woken_at + _NAP_S - monotonic()
            if nap > 0 and not self._closing:
                self._ready.wait(nap)
            while not (batch := self._take()) and not self._closing:
                self._idle = True
                self._ready.wait()
                self._idle = False
                self._woken_at = monotonic()
            self._ended = not batch
            return batch

    def _take(self) -> list[Any]:
        """Return what waits, but not too much of it; the lock is held."""
        batch: list[Any] = []
        waiting = [queue for queue in self._queues if queue]
        while waiting and len(batch) < _BATCH:
            first = waiting[0] if len(waiting) == 1 else min(waiting, key=_head)
            item = first.popleft()[1]
            self._weight -= weight(item) if first is not self._queues[MEASUREMENT] else 0
            batch.append(item)
            if not first:
                waiting.remove(first)
        return batch

    def _deliver(self, item: SkywardEvent | _Mark) -> None:
        if isinstance(item, _Mark):
            item.reached.set()
            return
        if self._abandoned:
            return
        for subscription in (self._routes.get(type(item)) or self._route(type(item))).heard_by:
            subscription.deliver(item)
        if type(item) is Log:
            self._lines[1] += 1

    def _relieve(self) -> None:
        """Tell everybody who waits for it that there is room again."""
        self._pressed = False
        for callback in self._drained:
            try:
                callback()
            except Exception:
                _log.exception("drained.failed callback=%r", callback)

    def _report(self) -> None:
        measurements, tasks = (now - then for now, then in zip(self._dropped, self._reported, strict=True))
        self._reported = list(self._dropped)
        self._reported_at = monotonic()
        _log.warning("events.dropped measurements=%d tasks=%d: a handler is too slow for them", measurements, tasks)


def _head(queue: deque[tuple[int, Any]]) -> int:
    """Return the number of the oldest event in a queue."""
    return queue[0][0]


def _check_type(kind: object) -> None:
    """Refuse what is no class of events."""
    if isinstance(kind, type) and issubclass(kind, SkywardEvent):
        return
    near = nearest(kind, [one.__name__ for one in ALL])
    offer = f" Did you mean sky.{near}?" if near else ""
    raise ConfigError(f"event_type must be a class of events, such as sky.TaskCompleted, not {kind!r}.{offer}")


def check_handler(handler: object) -> None:
    """
    Refuse what cannot be called, or would only make a coroutine that is never awaited.

    Args:
        handler: What was given as one.

    Raises:
        ConfigError: It is refused.
    """
    from inspect import iscoroutinefunction

    if not callable(handler):
        raise ConfigError(f"handler must be a function that takes an event, not {handler!r}.")
    if iscoroutinefunction(handler) or iscoroutinefunction(type(handler).__call__):
        raise ConfigError(
            f"handler must be a plain function, and {handler!r} is a coroutine function.",
            hint="Hand the event to your loop with loop.call_soon_threadsafe.",
        )
