"""Open and close a pool: signals, console, plugins around the client, and the promise that nothing stays behind."""

from __future__ import annotations

import atexit
import contextlib
import logging
import sys
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward import plugin as hooks
from skyward.console.mode import Console, open_console
from skyward.engine import events as contexts
from skyward.engine.choosing import choose
from skyward.engine.dispatcher import Dispatcher
from skyward.engine.forwarding import check_free
from skyward.engine.logs import LIFECYCLE, logging_to, write_event
from skyward.engine.loop import engine_loop
from skyward.engine.running import Running
from skyward.engine.termination import terminated_as_exit
from skyward.errors import AllProvidersFailedError, SkywardError
from skyward.model import event as events

if TYPE_CHECKING:
    from skyward.engine.meter import Meter
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
        meter: What counts the money.
    """

    def __init__(self, running: Running, dispatcher: Dispatcher, stack: contextlib.ExitStack, meter: Meter) -> None:
        self.running = running
        self.dispatcher = dispatcher
        self.stack = stack
        self.meter = meter
        self.opened = time.monotonic()


def open_pool(
    pool: Any, request: Request, pool_id: str, handlers: list[tuple[type[Any], Callable[[Any], object]]], meter: Meter
) -> OpenPool:
    """
    Get the nodes of a pool.

    Args:
        pool: The pool itself, for plugins.
        request: What the user asked for.
        pool_id: The id of this use of the pool.
        handlers: What was subscribed before.
        meter: What counts the money.

    Raises:
        SkywardError: If they can't be had; nothing is left behind then.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(logging_to(request.options.log_config))
        console = open_console(request.options.console, sys.stderr)
        stack.callback(console.close)
        dispatcher = Dispatcher()
        stack.callback(dispatcher.close)
        _subscribe(dispatcher, request, console, handlers)
        stack.callback(meter.close, dispatcher.publish)
        contexts.enter(dispatcher)
        stack.callback(contexts.leave, dispatcher)
        stack.enter_context(terminated_as_exit())
        for warning in request.warnings:
            _log.warning("%s", warning)
        check_free(request.options.ports)
        running = _first_that_opens(request, pool_id, dispatcher, meter)
        opened = OpenPool(running, dispatcher, stack, meter)
        _open_pools.add(opened)
        try:
            for remote, local in request.options.ports:
                running.engine.run(running.forwards.open("head", remote, local))
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

    Raises:
        BudgetExceededError: If the pool was stopped for it, and no call has told so.
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
            opened.meter.close(opened.dispatcher.publish)
            opened.dispatcher.publish(events.ClusterDestroyed(reason=reason, elapsed=elapsed))
    if error is None:
        opened.meter.raise_unheard()


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


def _first_that_opens(request: Request, pool_id: str, dispatcher: Dispatcher, meter: Meter) -> Running:
    from skyward.providers.local import Local

    reasons: list[tuple[str, str]] = []
    failure: SkywardError | None = None
    specs = [spec if spec.provider is not None else evolve(spec, provider=Local()) for spec in request.specs]
    order = engine_loop().run(choose(specs, request.options))
    for index, spec in enumerate(order):
        dispatcher.publish(events.ClusterRequested(spec=spec))
        alternatives = index + 1 < len(order)
        running = Running(request, spec, f"{pool_id}{index or ''}", dispatcher, meter, alternatives=alternatives)
        try:
            running.engine.run(running.open())
        except SkywardError as error:
            failure = error
            reasons.append((running.provisioning.provider_name, str(error)))
            if len(specs) == 1 or meter.exceeded is not None:
                raise
            continue
        return running
    listed = "".join(f"\n  {provider}: {reason}" for provider, reason in reasons)
    raise AllProvidersFailedError(
        f"No provider could give the nodes of pool {request.name!r}:{listed}",
        reasons=tuple(reasons),
        pool=request.name,
    ) from failure


def _subscribe(
    dispatcher: Dispatcher,
    request: Request,
    console: Console,
    handlers: list[tuple[type[Any], Callable[[Any], object]]],
) -> None:
    """Have everybody hear what he asked for, the user's own handlers first."""
    for event_type, handler in handlers:
        dispatcher.subscribe(event_type, handler)
    if request.options.on_event is not None:
        dispatcher.subscribe(events.SkywardEvent, request.options.on_event)
    if request.options.log_config is not None:
        dispatcher.subscribe(LIFECYCLE, write_event)
    if console.events:
        dispatcher.subscribe(console.events, console.handle)


@atexit.register
def _close_forgotten() -> None:
    """Close pools that were entered and never left, when the interpreter ends."""
    for opened in list(_open_pools):
        with contextlib.suppress(Exception):
            close_pool(opened, SystemExit())
