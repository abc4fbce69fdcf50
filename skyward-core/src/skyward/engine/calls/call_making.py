"""Make calls of pending functions: pickle what they need, in the thread that dispatches."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from skyward.engine.calls.arguments import Arguments
from skyward.engine.calls.buffers import Buffers
from skyward.engine.calls.call import Call, Learnt, Sink
from skyward.engine.calls.captured_functions import Captures
from skyward.engine.calls.input_streams import Feeder
from skyward.errors import UsageError
from skyward.link.recycling import recycling
from skyward.model.spec.retries_setting import times
from skyward.node.data.memory_share import share_of_memory
from skyward.node.worker.streams import StreamArgument

if TYPE_CHECKING:
    from skyward.engine.events.trails import Trails
    from skyward.engine.nodes.node_link import NodeLink
    from skyward.engine.source.shipping import Shipping
    from skyward.function import Function
    from skyward.model.spec.options import Options
    from skyward.pending import PendingFunction

_LEARNT = 256
"""Functions whose maps are remembered."""

Feed: TypeAlias = "Callable[[Call, Callable[[NodeLink], None]], None]"
"""Has something sent to a call's input stream."""


_callers = itertools.count(-1, -1)


def new_caller() -> int:
    """Return a number for calls that take turns of their own with those of other threads, maps and gathers."""
    return next(_callers)


class CallMaker:
    """
    Make the calls of one pool.

    Args:
        shipping: Sends the user's modules before the first call that may need them.
        options: The limits that calls have where they have none of their own.
        feed: Sends items of streamed arguments.
        trails: Tells what follows the pool's calls.
    """

    def __init__(self, shipping: Shipping, options: Options, feed: Feed, trails: Trails) -> None:
        self._shipping = shipping
        self._options = options
        self._feed = feed
        self._trails = trails
        share = share_of_memory()
        self._buffers = Buffers(share)
        recycling.bound(share)
        self._captures = Captures(self._buffers)
        self._arguments = Arguments(self._buffers)
        self.put, self.refs = self._arguments.put, self._buffers.refs
        self._learnt: OrderedDict[bytes, Learnt] = OrderedDict()
        # Names the cell of a notebook that makes a call.
        self.cell: Callable[[], str] = str

    def go_far(self) -> None:
        """Record that calls leave this machine."""
        self._buffers.go_far()

    def close(self) -> None:
        """Release all that was kept for later calls; the pool object may be opened again."""
        self._buffers.clear()
        # Another pool that is open makes its own.
        recycling.clear()

    def call(
        self,
        pending: PendingFunction[Any],
        sink: Sink,
        *,
        node: int | None = None,
        index: int = 0,
        caller: int = 0,
        shared: bool = False,
    ) -> Call:
        """
        Make a call of a pending function: pickle what it needs.

        Args:
            pending: The function, and its arguments.
            sink: What takes its answer.
            node: The only node it may run on.
            index: Its place among the calls of its sink.
            caller: Which turns it takes; its thread's if left out.
            shared: Whether its arguments go to several nodes.
        """
        args, kwargs, feeder = with_streams(pending, self._feed)
        function = pending.function
        self._shipping.send_new()
        trail = self._trails.begin(function.name)
        payload = self._arguments.dump(function.shape, function.name, args, kwargs, trail.carried if trail else None)
        made = Call(
            self._captures.capture(function, function.name),
            self._buffers.apart(payload) if shared else payload,
            sink,
            timeout=pending.timeout or self._options.default_compute_timeout or 0.0,
            queue_timeout=pending.queue_timeout or self._options.queue_timeout or 0.0,
            deadline=pending.deadline or self._options.call_deadline or 0.0,
            retries=pending.retries,
            interruptions=0 if feeder or function.streams else self._options.retry_on_interruption,
            node=node,
            streams=function.streams,
            feeder=feeder,
            index=index,
            caller=caller or threading.get_ident(),
            cell=self.cell(),
        )
        made.trail = trail
        return made

    def caller(self, function: Function[..., Any], sink: Sink) -> Callable[[tuple[Any, ...], int], Call]:
        """Make what makes calls of one function, of arguments and index; they take turns of their own."""
        caller = new_caller()
        if function.stream_parameters:
            return lambda args, index: self.call(function(*args), sink, index=index, caller=caller)
        captured = self._captures.capture(function, function.name)
        # By its content: a plain function is captured again for each map.
        captured.learnt = self._learnt.setdefault(captured.digest, captured.learnt)
        while len(self._learnt) > _LEARNT:
            self._learnt.popitem(last=False)
        timeout = function.timeout or self._options.default_compute_timeout or 0.0
        retries, interruptions = function.retries, self._options.retry_on_interruption
        # Items may be pulled in another thread, when a later cell runs.
        cell = self.cell()

        def make(args: tuple[Any, ...], index: int) -> Call:
            self._shipping.send_new()
            trail = self._trails.begin(function.name)
            payload = self._arguments.dump(function.shape, function.name, args, {}, trail.carried if trail else None)
            made = Call(
                captured,
                payload,
                sink,
                timeout=timeout,
                queue_timeout=self._options.queue_timeout or 0.0,
                deadline=self._options.call_deadline or 0.0,
                retries=retries,
                interruptions=interruptions,
                index=index,
                caller=caller,
                cell=cell,
            )
            made.trail = trail
            return made

        return make


def with_streams(pending: PendingFunction[Any], feed: Feed) -> tuple[tuple[Any, ...], dict[str, Any], Feeder | None]:
    """Replace each iterator that is streamed by a placeholder, and make what feeds them."""
    names = pending.function.stream_parameters
    if not names:
        return pending.args, pending.kwargs, None
    import inspect

    bound = inspect.signature(pending.function.shape).bind(*pending.args, **pending.kwargs)
    sources: list[Iterator[Any]] = []
    for name in names:
        if name in bound.arguments and not isinstance(bound.arguments[name], StreamArgument):
            try:
                sources.append(iter(bound.arguments[name]))
            except TypeError:
                raise UsageError(
                    f"{pending.function.name}({name}=...) takes an iterator, "
                    f"and got a {type(bound.arguments[name]).__name__}."
                ) from None
            bound.arguments[name] = StreamArgument(len(sources) - 1)
    if times(pending.retries):
        raise UsageError(
            f"{pending.function.name} takes an iterator, which can be consumed once: retries must be 0, "
            f"not {times(pending.retries)}."
        )
    return bound.args, bound.kwargs, Feeder(tuple(sources), feed)
