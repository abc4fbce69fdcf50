"""Open and close a pool: signals, console, plugins around the client, and the promise that nothing stays behind."""

from __future__ import annotations

import atexit
import contextlib
import logging
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward import plugin as hooks
from skyward.engine import events as contexts
from skyward.engine.dispatcher import Dispatcher
from skyward.engine.running import Running
from skyward.errors import AllProvidersFailedError, SkywardError
from skyward.model import event as events

if TYPE_CHECKING:
    from skyward.plan.request import Request

_log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that nodes have to leave in good order."""

_open_pools: weakref.WeakSet[OpenPool] = weakref.WeakSet()


class OpenPool:
    """
    Hold what an open pool is made of.

    Args:
        running: The nodes and the way to them.
        dispatcher: Where events go.
        stack: What is to be undone on the client when it closes.
    """

    def __init__(self, running: Running, dispatcher: Dispatcher, stack: contextlib.ExitStack) -> None:
        self.running = running
        self.dispatcher = dispatcher
        self.stack = stack
        self.opened = time.monotonic()


def open_pool(
    pool: Any, request: Request, pool_id: str, handlers: list[tuple[type[Any], Callable[[Any], object]]]
) -> OpenPool:
    """
    Get the nodes of a pool.

    Args:
        pool: The pool itself, for plugins.
        request: What the user asked for.
        pool_id: The id of this use of the pool.
        handlers: What was subscribed before.

    Raises:
        SkywardError: If they can't be had; nothing is left behind then.
    """
    with contextlib.ExitStack() as stack:
        dispatcher = Dispatcher()
        stack.callback(dispatcher.close)
        for event_type, handler in handlers:
            dispatcher.subscribe(event_type, handler)
        if request.options.on_event is not None:
            dispatcher.subscribe(events.SkywardEvent, request.options.on_event)
        contexts.enter(dispatcher)
        stack.callback(contexts.leave, dispatcher)
        _open_console(stack, dispatcher, request)
        stack.enter_context(_terminated_as_exit())
        for warning in request.warnings:
            _log.warning("%s", warning)
        running = _first_that_opens(request, pool_id, dispatcher)
        opened = OpenPool(running, dispatcher, stack)
        _open_pools.add(opened)
        try:
            stack.enter_context(
                hooks.entered(running.spec.plugins, "around_client", pool, running.provisioning.cluster)
            )
        except BaseException:
            running.engine.run(running.close(PATIENCE))
            raise
        opened.stack = stack.pop_all()
        return opened


def close_pool(opened: OpenPool, error: BaseException | None) -> None:
    """
    Give a pool's nodes back.

    Waits for what is still running, unless the pool is left by an exception.

    Args:
        opened: The pool.
        error: What the `with` block was left by.
    """
    running = opened.running
    engine = running.engine
    _open_pools.discard(opened)
    with opened.stack:
        try:
            if error is None:
                engine.run(running.settled())
        except BaseException as interrupt:
            error = interrupt
            raise
        finally:
            reason = "the pool was left" if error is None else f"the pool was left by {type(error).__name__}"
            opened.dispatcher.publish(events.ShutdownRequested(reason=reason))
            opened.dispatcher.publish(events.PoolStopping(reason=reason))
            _give_back(running, error)
            elapsed = time.monotonic() - opened.opened
            opened.dispatcher.publish(events.ClusterDestroyed(reason=reason, elapsed=elapsed))


def _give_back(running: Running, error: BaseException | None) -> None:
    engine = running.engine
    if error is not None:
        engine.post(running.cancel_all)
    try:
        engine.run(running.close(PATIENCE if error is None else 1.0))
    except KeyboardInterrupt:
        # Asked a second time: no more patience, but nothing stays behind either.
        engine.run(running.abort())
        raise


def _first_that_opens(request: Request, pool_id: str, dispatcher: Dispatcher) -> Running:
    from skyward.providers.local import Local

    reasons: list[tuple[str, str]] = []
    failure: SkywardError | None = None
    for index, wanted in enumerate(request.specs):
        spec = wanted if wanted.provider is not None else evolve(wanted, provider=Local())
        dispatcher.publish(events.ClusterRequested(spec=spec))
        running = Running(request, spec, f"{pool_id}{index or ''}", dispatcher)
        try:
            running.engine.run(running.open())
        except SkywardError as error:
            failure = error
            reasons.append((running.provisioning.provider_name, str(error)))
            if len(request.specs) == 1:
                raise
            continue
        return running
    listed = "".join(f"\n  {provider}: {reason}" for provider, reason in reasons)
    raise AllProvidersFailedError(
        f"No provider could give the nodes of pool {request.name!r}:{listed}",
        reasons=tuple(reasons),
        pool=request.name,
    ) from failure


def _open_console(stack: contextlib.ExitStack, dispatcher: Dispatcher, request: Request) -> None:
    from skyward.console.mode import choose

    mode = choose(request.options.console, sys.stderr)
    if mode == "silent":
        return
    from skyward.console import open_console

    console = open_console(mode, sys.stderr)
    stack.callback(console.close)
    dispatcher.subscribe(events.SkywardEvent, console.handle)
    stack.callback(dispatcher.flush, 5.0)


@contextlib.contextmanager
def _terminated_as_exit() -> Iterator[None]:
    """Turn SIGTERM into an exit that unwinds, where nobody else handles it and this is the main thread."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return

    def leave(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is leave:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


@atexit.register
def _close_forgotten() -> None:
    """Close pools that were entered and never left, when the interpreter ends."""
    for opened in list(_open_pools):
        with contextlib.suppress(Exception):
            close_pool(opened, SystemExit())
