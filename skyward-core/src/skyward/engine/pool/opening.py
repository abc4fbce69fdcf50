"""Open and close a pool: signals, console, plugins around the client, and the promise that nothing stays behind."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import logging
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import evolve

from skyward import plugin as hooks
from skyward.console.mode import Console, open_console
from skyward.engine.calls.settling import settled
from skyward.engine.calls.tracebacks import end_in_users_code
from skyward.engine.events import callbacks as contexts
from skyward.engine.events.event_dispatcher import Dispatcher
from skyward.engine.events.event_flush import Delivery
from skyward.engine.events.following import Following
from skyward.engine.events.log_files import LIFECYCLE, logging_to, write_event
from skyward.engine.instances.adopted import Adopted
from skyward.engine.instances.adoption import adopt
from skyward.engine.instances.choosing import choose
from skyward.engine.logs.storing import command, storing
from skyward.engine.nodes.forwarding import check_free
from skyward.engine.pool.event_loop import engine_loop
from skyward.engine.pool.lease_record import LeaseRecord, check_lease
from skyward.engine.pool.left_nodes import return_claimed
from skyward.engine.pool.pool_door import answering
from skyward.engine.pool.running import Running
from skyward.engine.pool.sigterm import terminated_as_exit
from skyward.engine.store.client_collections import ClientCollections
from skyward.errors import AllProvidersFailedError, LeftBehindError, PoolEndedError, SkywardError, StorageError
from skyward.model.events import event as events
from skyward.model.spec.trust_setting import Data, opened_as
from skyward.plan.offers.tried import each

if TYPE_CHECKING:
    from skyward.console.call_cells import CallCells
    from skyward.engine.instances.meter import Meter
    from skyward.model.events.follower import Follower
    from skyward.model.spec.spec import Spec
    from skyward.plan.config.request import Request

_log = logging.getLogger(__name__)

PATIENCE = 5.0
"""Seconds that nodes have to leave in good order."""

LAST_TRY = 10.0
"""Seconds that machines may take to end after a second interrupt."""

_open_pools: set[OpenPool] = set()


class OpenPool:
    """
    Hold what an open pool is made of.

    Args:
        running: The nodes and the way to them.
        dispatcher: Where events go.
        delivery: Sees to what handlers have not taken at the end.
        following: Tells what follows the pool of its calls and events.
        stack: What is to be undone on the client when it closes.
        meter: What counts the money.
    """

    def __init__(
        self,
        running: Running,
        dispatcher: Dispatcher,
        delivery: Delivery,
        following: Following,
        stack: contextlib.ExitStack,
        meter: Meter,
    ) -> None:
        self.running = running
        self.dispatcher = dispatcher
        self.delivery = delivery
        self.following = following
        self.stack = stack
        self.meter = meter
        self.collections = ClientCollections(
            running.engine, running.store, running.options, running.name, lambda: _trust(running)
        )
        self.around = contextlib.ExitStack()
        self.opened = time.monotonic()


def open_pool(
    pool: Any,
    request: Request,
    pool_id: str,
    handlers: list[tuple[type[Any], Callable[[Any], object]]],
    followers: list[tuple[str, Follower]],
    meter: Meter,
    begun: list[Running],
    usable: Callable[[OpenPool | None], None],
) -> None:
    """
    Open a pool: get its nodes.

    Args:
        pool: The pool itself, for plugins.
        request: What the user asked for.
        pool_id: The id of this use of the pool.
        handlers: What was subscribed before.
        followers: What is to follow the pool.
        meter: What counts the money.
        begun: Takes what is tried, one after the other, so that another thread can break it off.
        usable: Takes the open pool once calls can be sent to it, before plugins see it, and None if it is given up.

    Raises:
        SkywardError: If they can't be had; nothing is left rented then.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(logging_to(request.options.log_config))
        left = partial(_is_left, begun)
        log = stack.enter_context(storing(request, pool_id, meter, left))
        console = open_console(request.options.console, sys.stderr)
        stack.callback(console.close)
        # Until handlers have everything: a signal may come while they are waited for.
        stack.enter_context(terminated_as_exit())
        dispatcher = Dispatcher(log=log)
        following = stack.enter_context(Following(dispatcher, followers))
        delivery = stack.enter_context(Delivery(dispatcher, request.options.log_config))
        _subscribe(dispatcher, request, console, handlers)
        stack.callback(meter.close, dispatcher.publish)
        contexts.enter(dispatcher)
        stack.callback(contexts.leave, dispatcher)
        for warning in request.warnings:
            _log.warning("%s", warning)
        check_free(request.options.ports)
        opened: OpenPool | None = None
        try:
            running = _first_that_opens(pool, request, pool_id, dispatcher, following, meter, begun, console.cells)
            opened = OpenPool(running, dispatcher, delivery, following, stack, meter)
            _open_pools.add(opened)
            for remote, local in request.options.ports:
                running.engine.run(running.forwards.open("head", remote, local))
            stack.enter_context(answering(running))
            usable(opened)
            opened.around.enter_context(
                hooks.entered(running.spec.plugins, "around_client", pool, running.provisioning.cluster)
            )
            running.engine.run(running.record.begin())
            running.engine.run(running.inherited.resume(running.ready_shells()))
        except BaseException as error:
            # An interrupt may come just when nodes are ready, whatever was being waited for.
            if opened is not None and request.detached is not None and not opened.running.inherited.waits:
                _leave_again(opened)
            for each_begun in begun:
                _terminate(each_begun, error, PATIENCE)
            usable(None)
            if opened is not None:
                _open_pools.discard(opened)
            raise
        opened.stack = stack.pop_all()


def close_pool(opened: OpenPool, error: BaseException | None) -> None:
    """
    Close a pool: terminate its nodes, or leave their machines waiting for the next pool.

    Waits for what is still running, unless the pool is left by an exception.

    Args:
        opened: The pool.
        error: What the `with` block was left by.

    Raises:
        BudgetExceededError: If the pool was stopped for it, and no call has raised it.
        PoolEndedError: If it was ended from outside, and no call has raised it.
        LeftBehindError: If machines could not be ended; what the pool is left by bears that as a note instead.
        StorageError: If what tasks wrote to a volume may not be in its bucket, likewise.
    """
    running = opened.running
    engine = running.engine
    running.sizing.leave()
    _open_pools.discard(opened)
    if error is not None:
        end_in_users_code(error)
    with opened.stack:
        try:
            # Plugins leave while calls can still be sent.
            with opened.around:
                if error is None:
                    engine.run(settled(running.dispatch))
                    engine.run(running.inherited.settled())
            opened.collections.finish(ok=error is None)
        except BaseException as interrupt:
            error = interrupt
            raise
        finally:
            opened.delivery.left_by(error)
            reason = "the pool was left" if error is None else f"the pool was left by {type(error).__name__}"
            opened.dispatcher.publish(events.ShutdownRequested(reason=reason))
            opened.dispatcher.publish(events.PoolStopping(reason=reason))
            try:
                if error is not None:
                    engine.post(running.dispatch.cancel_all)
                running.provisioning.linger.wanted = True
                _terminate(running, error, PATIENCE if error is None else 1.0)
            finally:
                # Where that was not reached above; without a store there is nothing to wait for.
                opened.collections.finish(ok=False)
                elapsed = time.monotonic() - opened.opened
                opened.meter.close(opened.dispatcher.publish)
                opened.dispatcher.publish(events.ClusterDestroyed(reason=reason, elapsed=elapsed))
    if error is None:
        opened.meter.raise_undelivered()
        running.stopping.raise_undelivered()
    _report_unwritten(running.clouds.unwritten, error)


def _is_left(begun: list[Running]) -> bool:
    """Return whether machines were left to another client."""
    return any(running.provisioning.linger.stays for running in begun)


def _leave_again(opened: OpenPool) -> None:
    """Leave a pool once more that was attached, and whose nodes have begun to send what they kept."""
    # Late, because few pools are attached.
    from skyward.engine.pool.detaching import detach_pool

    try:
        detach_pool(opened.running, opened.running.name, None, None)
    except (SkywardError, OSError) as failed:
        _log.warning("The nodes of pool %r could not be left, and are terminated: %s", opened.running.name, failed)


def _trust(running: Running) -> Data | None:
    """Return what is opened as data of what the nodes of a pool send."""
    return opened_as(running.spec.trust, strangers=running.provisioning.facts.strangers)


def _report_unwritten(unwritten: list[str], error: BaseException | None) -> None:
    """Report what may be lost of what tasks wrote to volumes: by an error, or by a note on the one that there is."""
    if unwritten and error is None:
        raise StorageError(" ".join(unwritten))
    for said in unwritten:
        assert error is not None
        error.add_note(said)


def _terminate(running: Running, error: BaseException | None, patience: float) -> None:
    """Terminate nodes, and report what could not be: by an error, or by a note on the one that there is."""
    engine = running.engine
    try:
        if running.inherited.waits:
            engine.run(return_claimed(running))
    except (SkywardError, OSError) as failed:
        _log.warning("The nodes of pool %r could not be returned, and are terminated: %s", running.name, failed)
    try:
        engine.run(running.close(patience))
    except KeyboardInterrupt as second:
        _tear_down(running, second)
        raise
    except LeftBehindError as left:
        if error is None:
            raise
        error.add_note(str(left))


def _tear_down(running: Running, second: KeyboardInterrupt) -> None:
    """Close with shorter timeouts after a second interrupt, and report what is left; each further one hurries."""
    for within in (LAST_TRY, 0.0, 0.0):
        try:
            running.engine.run(running.abort(within))
        except LeftBehindError as left:
            second.add_note(str(left))
        except KeyboardInterrupt:
            continue
        return


def _completed(spec: Spec) -> Spec:
    """Return a spec with what it leaves to us: this machine as provider, and the plugins that its plugins build on."""
    from skyward.providers.local import Local

    return evolve(
        spec, provider=Local() if spec.provider is None else spec.provider, plugins=hooks.completed(spec.plugins)
    )


def _first_that_opens(
    pool: Any,
    request: Request,
    pool_id: str,
    dispatcher: Dispatcher,
    following: Following,
    meter: Meter,
    begun: list[Running],
    cells: CallCells | None = None,
) -> Running:
    """Open the first spec that can be had; what was begun for it is added to a list, whatever becomes of it."""
    reasons: list[tuple[str, str]] = []
    failure: SkywardError | None = None
    specs = tuple(map(_completed, request.specs))
    request = evolve(request, specs=specs)
    numbers = (f"{pool_id}{number or ''}" for number in itertools.count())
    left: list[str] = []
    adopted: Adopted | None = engine_loop().run(adopt(request))
    # What lingers is at hand, whatever is sold elsewhere.
    order = engine_loop().run(choose(specs, request.options)) if adopted is None else (adopted.spec,)
    for index, spec in enumerate(order):
        dispatcher.publish(events.ClusterRequested(spec=spec, logs=command(request, pool_id)))
        alternatives = index + 1 < len(order)
        ids = numbers if adopted is None else itertools.chain((adopted.pool_id,), numbers)
        running = Running(evolve(request, adopted=adopted), spec, ids, dispatcher, meter, alternatives=alternatives)
        running.record = LeaseRecord(running)
        if cells is not None:
            _follow_cells(running, cells)
        begun.append(running)
        try:
            following.begin(running.reporting.trails, hooks.followers(spec.plugins, pool))
            check_lease(running)
            running.engine.run(running.open())
        except BaseException as error:
            _terminate(running, error, 0.0)
            stopped = meter.exceeded is not None or isinstance(error, PoolEndedError)
            if len(specs) == 1 or stopped or not isinstance(error, SkywardError):
                raise
            failure = error
            reasons.append((running.provisioning.provider_name, str(error)))
            left += getattr(error, "__notes__", ())
            continue
        for note in left:
            # The pool works, so that nothing is raised.
            _log.error("%s", note)
        return running
    all_failed = AllProvidersFailedError(
        f"No provider could give the nodes of pool {request.name!r}: {each(reasons)}",
        reasons=tuple(reasons),
        pool=request.name,
    )
    for note in left:
        all_failed.add_note(note)
    raise all_failed from failure


def _follow_cells(running: Running, cells: CallCells) -> None:
    """Record the cell of a notebook that sends each call, and cancel those of an interrupted one."""
    running.maker.cell, running.dispatch.cells = cells.current, cells
    running.reporting.shown = cells.flush
    cells.on_interrupt(lambda cell: running.engine.post(running.dispatch.cancel_cell, cell))


def _subscribe(
    dispatcher: Dispatcher,
    request: Request,
    console: Console,
    handlers: list[tuple[type[Any], Callable[[Any], object]]],
) -> None:
    """Subscribe all handlers to the events they ask for, the user's own first."""
    for event_type, handler in handlers:
        dispatcher.subscribe(event_type, handler)
    if request.options.on_event is not None:
        dispatcher.subscribe(events.SkywardEvent, request.options.on_event)
    if request.options.log_config is not None:
        dispatcher.subscribe(LIFECYCLE, functools.partial(write_event, pool=request.name), own=True)
    if console.events:
        dispatcher.subscribe(console.events, console.handle, own=True)


@atexit.register
def _close_forgotten() -> None:
    """Close pools that were entered and never left, when the interpreter ends."""
    for opened in list(_open_pools):
        end = SystemExit()
        with contextlib.suppress(Exception):
            close_pool(opened, end)
        for note in getattr(end, "__notes__", ()):
            # No caller is left to raise it at.
            _log.error("%s", note)
