"""One call in a worker: from its payload to its outcome."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import TYPE_CHECKING, Any

from skyward.errors import UsageError
from skyward.link.described import type_name
from skyward.link.frames import Kind, encode
from skyward.link.messages import (
    CREDIT,
    ITEM,
    CancelReason,
    Status,
    TaskFlag,
)
from skyward.link.payload import Payload, load
from skyward.link.payload_making import dump
from skyward.link.refs import HERE
from skyward.link.windows import LARGEST_EVENT
from skyward.node.agent.entry import INTERRUPT_SIGNAL
from skyward.node.agent.members import MEMBERSHIPS
from skyward.node.task import call_collections, task_context
from skyward.node.worker.driving import PATIENCE, Driver, interruption, unwinds
from skyward.node.worker.failed_frames import clear_frames
from skyward.node.worker.outcome import Outcome, failed
from skyward.node.worker.streams import InputStream, Interrupted, OutputStream, opening

if TYPE_CHECKING:
    from types import FrameType

    from skyward.link.store_said import StorePlace
    from skyward.model.instances.instance import InstanceInfo
    from skyward.node.worker.client_files import Keeping
    from skyward.node.worker.functions import FunctionStore


class Setting:
    """
    Hold what every task of a worker shares.

    Args:
        facts: What `instance_info` reports about this node and worker, whichever the members are.
    """

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.memberships: dict[int, dict[str, Any]] = {}
        self.plugins: tuple[Any, ...] = ()
        self.main: Execution | None = None
        self.retires = False
        self.keeping: Keeping | None = None
        self.store: Callable[[], StorePlace] = task_context.store_nowhere

    def remember(self, membership: dict[str, Any]) -> None:
        """Take a membership; calls name it by its version. Its peers are looked up when a call looks at them."""
        self.memberships[membership["version"]] = membership
        while len(self.memberships) > MEMBERSHIPS:
            del self.memberships[next(iter(self.memberships))]

    def info(self) -> InstanceInfo:
        """Describe this worker before any task."""
        from skyward.model.instances.instance import InstanceInfo

        return InstanceInfo.from_dict(self.facts)

    def interrupt_main(self, frame: FrameType | None) -> None:
        """Interrupt the call in the main thread, if it is to be; called in the main thread by the signal."""
        execution = self.main
        if execution is not None and execution.armed and execution.reason is not None:
            execution.armed = False
            raise interruption(frame)


class Execution:
    """
    Run one call in the thread that makes this.

    Args:
        call: Its id.
        setting: What it shares with the worker's other calls.
        send: Writes a frame to the agent.
        broadcast: Number of the broadcast that it is part of; 0 if none.
        flags: What else its task says.
    """

    def __init__(
        self, call: int, setting: Setting, send: Callable[..., None], *, broadcast: int = 0, flags: int = 0
    ) -> None:
        self.call = call
        self.broadcast = broadcast
        self._data = bool(flags & TaskFlag.DATA)
        self._held = bool(flags & TaskFlag.HELD)
        self.thread = threading.get_ident()
        self.armed = False
        self.reason: CancelReason | None = None
        self._output: OutputStream | None = None
        self._driver: Driver | None = None
        self._began = self.began_at = 0.0
        self._setting = setting
        self._send = send
        self._inputs: dict[int, InputStream] = {}
        self._lock = threading.Lock()
        self._main = threading.current_thread() is threading.main_thread()
        # Made for a call that is interrupted: others do without.
        self._over: threading.Event | None = None

    def run(self, functions: FunctionStore, digest: bytes, payload: Payload, members: int, *, streams: bool) -> Outcome:
        """
        Run it to its end, whatever that is.

        Args:
            functions: Where its function is.
            digest: The function's.
            payload: Its arguments.
            members: The version of the membership it sees.
            streams: Whether what it returns is iterated.
        """
        self._began = began = time.perf_counter()
        self.began_at = time.time()
        context = task_context.TaskContext(
            call_id=self.call,
            facts=self._setting.facts,
            membership={**self._setting.memberships.get(members, {}), "broadcast": self.broadcast},
            emit=self._emit,
            abandon=self._abandon,
            retire=self._retire,
            held=self._held,
            put=self._put,
            keeping=self._setting.keeping,
            store=self._setting.store,
            data=self._data,
        )
        token = task_context.set_context(context)
        if self._main:
            self._setting.main = self
        outcome: Outcome | None = None
        stopped: Interrupted | None = None
        try:
            if self.reason is not None:
                raise Interrupted
            outcome = self._guarded(functions.get, digest, payload, context, began, streams=streams)
        except Interrupted as error:
            outcome, stopped = self._stopped(began), error
        finally:
            self._disarm()
            call_collections.finish(context, ok=outcome is not None and outcome.status in (Status.OK, Status.STREAMED))
            task_context.reset_context(token)
        if stopped is not None:
            clear_frames(stopped)
            del stopped
        return outcome

    def interrupt(self, reason: CancelReason) -> None:
        """
        Stop the call at its next bytecode; called in another thread.

        It is interrupted again until it unwinds: Python drops what comes up in a finalizer, and a signal that comes
        just before a wait does not end it.
        """
        with self._lock:
            if self.reason is not None:
                return
            self.reason = reason
            if self._output is not None:
                self._output.stop()
            for stream in self._inputs.values():
                stream.end(Interrupted())
            if not self.armed:
                return
            self._over = threading.Event()
            if self._driver is None:
                self._unwind()
            else:
                self._driver.leave()
            given = self._over, self._driver
            threading.Thread(target=self._insist, args=given, name="skyward-interrupt", daemon=True).start()

    def acknowledged(self, items: int) -> None:
        """Allow its stream to send more items."""
        with self._lock:
            output = self._output
        if output is not None:
            output.acknowledged(items)

    def push(self, stream: int, payload: Payload) -> None:
        """Take an item of an input stream."""
        self._input(stream).push(payload)

    def end(self, stream: int, failure: bytes) -> None:
        """Take the end of an input stream."""
        error: BaseException | None = None
        if failure:
            from skyward.link.failure import load_failure

            error = load_failure(failure, note="raised by the iterator that is streamed from the client")
        self._input(stream).end(error)

    def _input(self, index: int) -> InputStream:
        with self._lock:
            stream = self._inputs.get(index)
            if stream is None:
                stream = self._inputs[index] = InputStream(index, self._consumed)
                if self.reason is not None:
                    stream.end(Interrupted())
            return stream

    def _consumed(self, index: int, items: int) -> None:
        self._send(encode(Kind.CREDIT, CREDIT.pack(self.call, index, items)))

    def _emit(self, event: object) -> None:
        from skyward.link.emitted import encode_event

        body, payload = encode_event(self.call, event, data=self._data)
        if payload.size > LARGEST_EVENT:
            raise UsageError(
                f"{type(event).__name__} has {payload.size} bytes, and an event may have {LARGEST_EVENT}. "
                "Return what is large, or yield it."
            )
        self._send(encode(Kind.EMIT, body, fds=1 if payload.segment else 0), payload)

    def _put(self, value: object) -> Any:
        from skyward.node.worker.put_in_task import put_here

        return put_here(value, data=self._data)

    def _retire(self) -> None:
        self._setting.retires = True
        # Before the answer, so that the agent sends no task here any more.
        self._send(encode(Kind.RETIRE))

    def _abandon(self, error: BaseException) -> None:
        """Answer for the call's own thread, which cannot; called in another one."""
        from skyward.link.failure import dump_failure
        from skyward.node.worker.tagged_lines import send_all

        send_all(sys.stdout)
        send_all(sys.stderr)
        outcome = Outcome(Status.RAISED, time.perf_counter() - self._began, text=dump_failure(error, data=self._data))
        self._send(encode(Kind.RESULT, outcome.body(self.call, self.began_at)))
        os._exit(75)

    def _guarded(
        self,
        find: Callable[[bytes, tuple[Any, ...]], Callable[..., Any]],
        digest: bytes,
        payload: Payload,
        context: task_context.TaskContext,
        began: float,
        *,
        streams: bool,
    ) -> Outcome:
        try:
            function = find(digest, self._setting.plugins)
            context.function = getattr(function, "__qualname__", "") or type(function).__name__
            token = opening.set(self._input)
            try:
                args, kwargs, *carried = load(payload)
            finally:
                opening.reset(token)
            if carried:
                (context.carried,) = carried
        except Interrupted:
            raise
        except BaseException as error:
            return self._unloadable(error, began)
        try:
            self._arm()
            value = function(*args, **kwargs)
            del args, kwargs
            if streams:
                self._stream(value)
            elif hasattr(value, "cr_frame"):
                value = self._drive().run(value)
        except Interrupted:
            raise
        except _Unpicklable as error:
            self._disarm()
            ended = failed("ResultError", str(error), time.perf_counter() - began)
            clear_frames(error)
            return ended
        except BaseException as error:
            self._disarm()
            ended = self._raised(error, began)
            clear_frames(error)
            return ended
        seconds = time.perf_counter() - began
        self._disarm()
        if streams:
            return Outcome(Status.STREAMED, seconds)
        try:
            return Outcome(Status.OK, seconds, dump(value, data=self._data, refs=HERE))
        except BaseException as error:
            return failed("ResultError", _cannot_be_pickled("its result", value, error), seconds)

    def _stream(self, items: Iterable[Any] | AsyncIterator[Any]) -> None:
        """Send what a generator gives, as fast as the consumer takes it."""
        with self._lock:
            output = self._output = OutputStream()
            if self.reason is not None:
                output.stop()
        items = self._drive().items(items) if isinstance(items, AsyncIterator) else iter(items)
        try:
            for item in items:
                try:
                    payload = dump(item, data=self._data, refs=HERE)
                except Exception as error:
                    raise _Unpicklable(_cannot_be_pickled("an item of its stream", item, error)) from error
                if not output.wait():
                    raise Interrupted
                output.sent(payload.size)
                body = ITEM.pack(self.call, 0) + payload.encode()
                self._send(encode(Kind.ITEM, body, fds=1 if payload.segment else 0), payload)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def _drive(self) -> Driver:
        # Under the lock: an interrupt either came up before, or finds it.
        with self._lock:
            self._driver = Driver()
        return self._driver

    def _insist(self, over: threading.Event, driver: Driver | None) -> None:
        """Interrupt a call that neither unwinds nor has an event loop that turns, such as one that awaits nothing."""
        while not over.wait(PATIENCE):
            with self._lock:
                if over.is_set() or (driver is not None and driver.notified):
                    return
                if not unwinds(self.thread):
                    self.armed = True
                    self._unwind()

    def _unwind(self) -> None:
        if self._main:
            signal.pthread_kill(self.thread, INTERRUPT_SIGNAL)
        else:
            _raise_in_thread(self.thread, interruption(sys._current_frames().get(self.thread)))

    def _arm(self) -> None:
        with self._lock:
            if self.reason is not None:
                raise Interrupted
            self.armed = True

    def _disarm(self) -> None:
        while True:
            try:
                with self._lock:
                    if self.armed and self.reason is not None and not self._main:
                        _raise_in_thread(self.thread, None)
                    self.armed = False
                    if self._over is not None:
                        self._over.set()
                if self._main:
                    self._setting.main = None
                return
            except Interrupted:
                continue

    def _stopped(self, began: float) -> Outcome:
        seconds = time.perf_counter() - began
        if self.reason == CancelReason.TIMEOUT:
            return failed("TaskTimeoutError", "", seconds)
        return Outcome(Status.CANCELLED, seconds)

    def _raised(self, error: BaseException, began: float) -> Outcome:
        from skyward.errors import StateLostError, WorkerSpentError
        from skyward.link.failure import dump_failure

        seconds = time.perf_counter() - began
        if isinstance(error, WorkerSpentError | StateLostError):
            return failed(type(error).__name__, str(error), seconds)
        return Outcome(Status.RAISED, seconds, text=dump_failure(error, data=self._data))

    def _unloadable(self, error: BaseException, began: float) -> Outcome:
        from skyward.errors import PluginError

        if isinstance(error, PluginError):
            return self._raised(error, began)
        seconds = time.perf_counter() - began
        if isinstance(error, ModuleNotFoundError):
            message = (
                f"the node has no module {error.name!r}. Add it to Image(pip=[...]) if it is a package, "
                "or to Image(includes=[...]) if it is yours."
            )
        else:
            message = f"what was sent cannot be unpickled on the node: {type(error).__name__}: {error}"
        return failed("SerializationError", message, seconds)


def current_call() -> int:
    """Name the call that the calling thread works for; 0 if none."""
    return task_context.current_call_id()


class _Unpicklable(Exception):
    """An item of a stream that cannot travel."""


def _raise_in_thread(thread: int, exception: type[BaseException] | None) -> None:
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), ctypes.py_object(exception) if exception else None
    )


def _cannot_be_pickled(what: str, value: object, error: BaseException) -> str:
    return f"{what}, a {type_name(type(value))}, cannot be pickled: {error}"
