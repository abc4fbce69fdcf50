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
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from time import monotonic
from typing import Any, TypeVar

from attrs import define, field

from skyward.engine.events.event_weight import KEPT, MEASUREMENT, TASK, rank as rank_of, weight
from skyward.engine.events.subscription import Route, Subscription, check_handler, check_type
from skyward.engine.logs.pool_log import NOT_STORED, PoolLog
from skyward.link.emitted import class_name
from skyward.model.events.event import Log, SkywardEvent
from skyward.plan.logs.event_record import UNSTORED
from skyward.plan.pool.flush_deadline import Left

__all__ = ["CURRENT", "Dispatcher"]

E = TypeVar("E", bound=SkywardEvent)

CURRENT: ContextVar[tuple[Dispatcher, ...]] = ContextVar("skyward_dispatchers", default=())
"""The dispatchers of the pools that are open in this context, the innermost last."""

_log = logging.getLogger(__name__)

# Waking the thread costs more than delivering an event, so while events come thick it is woken this often at most.
_NAP_S = 0.005
_BATCH = 128
_WARN_EVERY_S = 10.0


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
        log: Takes events at once, in the thread that publishes them; calls and lines it takes elsewhere.

    >>> from skyward.model.events.event import NodeReady
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

    def __init__(self, *, limit: int = 100_000, name: str = "skyward-events", log: PoolLog = NOT_STORED) -> None:
        self.log = log
        self._limit = limit
        self._high = limit * 4 // 5
        self._low = limit // 2
        self._name = name
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._subscriptions: tuple[Subscription, ...] = ()
        self._routes: dict[type, Route] = {}
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
        # What was taken from the queues, the first of which is being delivered.
        self._batch: deque[Any] = deque()
        self._handled = 0
        self._handler: Subscription | None = None

    def subscribe(
        self, event_type: type[E] | tuple[type[SkywardEvent], ...], handler: Callable[[E], object], *, own: bool = False
    ) -> Callable[[], None]:
        """
        Call a handler for each event of a type, in the dispatcher's thread.

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
            check_type(one)
        check_handler(handler)
        subscription = Subscription(types, handler, own)
        with self._lock:
            self._subscriptions = (*self._subscriptions, subscription)
            self._routes = {}

        def cancel() -> None:
            with self._lock:
                self._subscriptions = tuple(one for one in self._subscriptions if one is not subscription)
                self._routes = {}

        return cancel

    def wants(self, event_type: type[SkywardEvent]) -> bool:
        """Return whether an event of this very type would reach a handler, or the stored log."""
        route = self._routes.get(event_type) or self._route(event_type)
        return route.stored or bool(route.subscribers)

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
        if route.stored:
            self.log.event(event)
        if not route.subscribers:
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
            # Measurements are dropped first, so they hold nothing up.
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
        Return whether it takes no more events.
        """
        return self._closing

    @property
    def pressure(self) -> bool:
        """Return whether so much waits that no more log lines and tasks should be made."""
        return self._pressed

    @property
    def lines_waiting(self) -> bool:
        """Return whether a line that was printed on a node has not reached every handler."""
        taken, delivered = self._lines
        return taken != delivered

    @property
    def dropped(self) -> int:
        """Return how many events have been dropped."""
        return sum(self._dropped)

    def on_drained(self, callback: Callable[[], object]) -> None:
        """
        Call a function whenever the pressure has gone.

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

    def end(self) -> None:
        """Take no more events; the thread ends once it has delivered what waits."""
        with self._lock:
            self._closing = True
            self._ready.notify()

    def ended(self, timeout: float | None = None) -> bool:
        """
        Wait for the thread to end, and return whether it has; a handler, which runs in it, gets True at once.

        Args:
            timeout: Longest wait, in seconds; None waits as long as it takes.
        """
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    @property
    def handled(self) -> int:
        """Return how many calls of handlers have ended; cheap, other than `left`."""
        return self._handled

    def left(self) -> Left:
        """Count what handlers have not taken yet."""
        with self._lock:
            kinds = Counter(map(type, self._batch.copy()))
            for queue in self._queues:
                kinds.update(type(item) for _, item in queue)
        del kinds[_Mark]
        name = self._handler.name if self._handler is not None else "nothing"
        return Left(lines=kinds[Log], others=kinds.total() - kinds[Log], handler=name)

    def abandon(self) -> list[SkywardEvent]:
        """
        Deliver nothing more, and return what has not been delivered, in order.

        The handler that runs cannot be stopped, but is called no more; its event is among those that are returned.
        """
        with self._lock:
            self._closing = self._abandoned = True
            undelivered = self._undelivered()
            # A thread that waits in `flush` is woken by the marks, which stay.
            for queue in self._queues:
                marks = [entry for entry in queue if isinstance(entry[1], _Mark)]
                queue.clear()
                queue.extend(marks)
            self._ready.notify()
        return undelivered

    def close(self, timeout: float | None = 5.0) -> bool:
        """
        Deliver what waits, then end the thread; closing again does nothing.

        Args:
            timeout: Longest wait, in seconds; what has not been delivered then is given up.

        Returns:
            Whether everything was delivered.
        """
        self.end()
        if self.ended(timeout):
            return True
        first = not self._abandoned
        waiting = self.abandon()
        if first:
            _log.warning("events.abandoned waiting=%d: a handler still ran after %s s", len(waiting), timeout)
        return False

    def _undelivered(self) -> list[SkywardEvent]:
        """Return what no handler has had, or not each of them; the lock is held."""
        queued = sorted(entry for queue in self._queues for entry in queue if not isinstance(entry[1], _Mark))
        # The thread runs meanwhile, so it is copied in one step.
        return [item for item in self._batch.copy() if not isinstance(item, _Mark)] + [event for _, event in queued]

    def _route(self, kind: type) -> Route:
        with self._lock:
            subscribers = tuple(one for one in self._subscriptions if issubclass(kind, one.types))
            stored = self.log is not NOT_STORED and not issubclass(kind, UNSTORED)
            route = self._routes[kind] = Route(subscribers, rank_of(kind), stored)
        return route

    def _put(self, rank: int, item: SkywardEvent | _Mark) -> None:
        """Queue something and wake the thread; the lock is held."""
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
            while batch:
                self._deliver(batch[0])
                batch.popleft()
            if self._pressed and self._weight < self._low:
                self._relieve()
            if self._reported != self._dropped and monotonic() - self._reported_at > _WARN_EVERY_S:
                self._report()
        if self._reported != self._dropped:
            self._report()

    def _next(self) -> deque[Any]:
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

    def _take(self) -> deque[Any]:
        """Return what waits, but not too much of it; the lock is held."""
        batch = self._batch
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
        for subscription in (self._routes.get(type(item)) or self._route(type(item))).subscribers:
            if self._abandoned:
                return
            self._handler = subscription
            subscription.deliver(item)
            self._handled += 1
        if type(item) is Log:
            self._lines[1] += 1

    def _relieve(self) -> None:
        """Wake all that wait for room."""
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
