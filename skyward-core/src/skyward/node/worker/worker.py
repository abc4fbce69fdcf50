"""
The process that runs user code.

Tasks arrive on one socket, which the threads that run them read themselves: no hand-over between threads lies
on the way of a call.
Everything that must get through while a task runs (cancel, credit, stop) arrives on a second socket, read by a
thread of its own.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
from collections import deque
from typing import Any

from skyward.link.channel import receive, take
from skyward.link.frames import Frame, Kind, Parser, decode_json, encode, encode_json
from skyward.link.messages import BLOB, CALL, CANCEL, CREDIT, ITEM, RECALL, TASK, CancelReason, TaskFlag
from skyward.link.payload import Payload, decode
from skyward.link.payload_parts import Place
from skyward.link.recycling import recycling
from skyward.node.agent.entry import (
    CONTROL_FD,
    DUMP_FD,
    INTERRUPT_SIGNAL,
    SLOT_TABLE_FD,
    STACKS_SIGNAL,
    TASK_FD,
    die_with_parent,
    read_start,
)
from skyward.node.agent.slot_table import SlotTable
from skyward.node.data.memory_share import share_of_memory
from skyward.node.worker.client_files import Keeping
from skyward.node.worker.execution import Execution, Setting
from skyward.node.worker.functions import FunctionStore
from skyward.node.worker.loop_tasks import loop_tasks, thread_stacks
from skyward.node.worker.outcome import Outcome
from skyward.node.worker.peer_lookup import Directory
from skyward.node.worker.routes import STDERR
from skyward.node.worker.standard_descriptors import DESCRIPTORS
from skyward.node.worker.store_lookup import StoreLookup
from skyward.node.worker.streams import Interrupted
from skyward.node.worker.tagged_lines import TaggedStream, send_all
from skyward.node.worker.tqdm_bridge import bridge_when_imported

_REMEMBERED = 1024


class WorkerProcess:
    """
    Serve tasks until the agent closes the task socket.

    Args:
        tasks: The socket that tasks come from and results go to.
        control: The socket for what cannot wait.
        slot_table: Where the agent reads what runs.
        setting: What every task of this worker shares.
        slots: How many tasks run at once.
    """

    def __init__(
        self, tasks: socket.socket, control: socket.socket, slot_table: SlotTable, setting: Setting, slots: int
    ) -> None:
        self._tasks = tasks
        self._control = control
        self._slot_table = slot_table
        self._setting = setting
        self._slots = slots
        self._functions = FunctionStore()
        self._directory = Directory(self.send)
        self._keeping = setting.keeping = Keeping(self.send)
        self._store = StoreLookup(self.send)
        setting.store = self._store.find
        self._receiving = threading.Lock()
        # The slot that runs a task and kept `_receiving`: waking another thread to read would slow a lone call down.
        self._keeper: int | None = None
        self._shared = False
        self._sending = threading.Lock()
        self._parser = Parser()
        self._fds: deque[int] = deque()
        self._queue: deque[tuple[bytes, tuple[int, ...]]] = deque()
        self._executions: dict[int, Execution] = {}
        self._state = threading.Lock()
        # What arrived for calls that have not begun, and which calls have ended lately.
        self._early: dict[int, list[tuple[Frame, tuple[int, ...]]]] = {}
        self._over: deque[int] = deque(maxlen=_REMEMBERED)
        self._ended = False

    def serve(self) -> None:
        """Run tasks in this thread and in as many more as there are slots; return when there will be no more."""
        threading.Thread(target=self._listen, name="skyward-control", daemon=True).start()
        others = [
            threading.Thread(target=self._serve_slot, args=(slot,), name=f"skyward-slot-{slot}", daemon=True)
            for slot in range(1, self._slots)
        ]
        for thread in others:
            thread.start()
        self._serve_slot(0)
        for thread in others:
            thread.join()

    def send(self, frame: bytes, payload: Payload | None = None) -> None:
        """
        Write one frame to the agent.

        Args:
            frame: Header and body.
            payload: Whose segment's descriptor goes with it.
        """
        fds = payload.fds if payload else []
        with self._sending:
            if payload and payload.stored:
                self._hand_over(payload)
            sent = socket.send_fds(self._tasks, [frame], fds) if fds else self._tasks.send(frame)
            if sent < len(frame):
                self._tasks.sendall(memoryview(frame)[sent:])

    def _hand_over(self, payload: Payload) -> None:
        """Send the agent what a result refers to, just before it."""
        names = [part for part in payload.parts if part.place == Place.THERE]
        for part, segment in zip(names, payload.stored, strict=True):
            frame = encode(Kind.BLOB, BLOB.pack(part.digest, part.size), fds=1)
            socket.send_fds(self._tasks, [frame], [segment.fd])

    def _serve_slot(self, slot: int) -> None:
        while True:
            try:
                task = self._next_task(slot)
                if task is None:
                    return
                self._run(slot, *task)
            except Interrupted:
                continue

    def _next_task(self, slot: int) -> tuple[bytes, tuple[int, ...]] | None:
        """Wait for a task; the slot that gets a lone one stays the one that reads, until another is asked to."""
        if not self._take_back(slot):
            self._receiving.acquire()
        kept = False
        try:
            if self._setting.retires:
                return None
            while not self._queue:
                if self._ended:
                    return None
                data = receive(self._tasks, self._fds)
                if not data:
                    self._ended = True
                    return None
                self._accept(data)
            task = self._queue.popleft()
            with self._state:
                kept = not self._queue and not self._shared
                if kept:
                    self._keeper = slot
            return task
        finally:
            if not kept:
                self._receiving.release()

    def _take_back(self, slot: int | None = None) -> bool:
        """Take over the reading from the slot that kept it while it runs a task, if that is `slot`."""
        with self._state:
            if self._keeper is None or (slot is not None and self._keeper != slot):
                return False
            self._keeper = None
            return True

    def _accept(self, data: bytes) -> None:
        for frame in self._parser.feed(data):
            fds = take(self._fds, frame.fds) if frame.fds else ()
            match frame.kind:
                case Kind.TASK:
                    self._queue.append((frame.body, fds))
                case Kind.FUNCTION:
                    self._functions.add(frame.body, fds)
                case Kind.DROP:
                    self._functions.drop(frame.body)
                case Kind.MEMBERS:
                    membership = decode_json(frame.body)
                    self._setting.remember({**membership, "peers": self._directory.peers(membership)})
                case Kind.FILES:
                    _forget_directory_listings()

    def _run(self, slot: int, body: bytes, fds: tuple[int, ...]) -> None:
        call, _, members, broadcast, flags, digest = TASK.unpack_from(body)
        payload = decode(body, TASK.size, fds)
        execution = Execution(call, self._setting, self.send, broadcast=broadcast, flags=flags)
        with self._state:
            self._executions[call] = execution
            early = self._early.pop(call, ())
        for frame, its_fds in early:
            self._deliver(execution, frame, its_fds)
        self._slot_table.start(slot, call, execution.thread)
        try:
            outcome = execution.run(self._functions, digest, payload, members, streams=bool(flags & TaskFlag.STREAM))
        finally:
            self._finish(slot, call)
        del payload
        self._report(call, outcome, execution.began_at)

    def _finish(self, slot: int, call: int) -> None:
        with self._state:
            self._executions.pop(call, None)
            self._over.append(call)
        self._slot_table.stop(slot, call)

    def _report(self, call: int, outcome: Outcome, began: float) -> None:
        _flush(sys.stdout)
        _flush(sys.stderr)
        payload = outcome.payload
        fds = 1 if payload and payload.segment else 0
        self.send(encode(Kind.RESULT, outcome.body(call, began), fds=fds), payload)

    def _listen(self) -> None:
        """Handle what cannot wait, until the agent is gone; then so is this process."""
        # Here alone: a signal cuts short what user code waits for in C.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {STACKS_SIGNAL})
        parser, fds = Parser(), deque[int]()
        while True:
            data = receive(self._control, fds)
            if not data:
                os._exit(70)
            for frame in parser.feed(data):
                self._control_frame(frame, take(fds, frame.fds) if frame.fds else ())

    def _control_frame(self, frame: Frame, fds: tuple[int, ...]) -> None:
        if frame.kind == Kind.RECALL:
            back = self._return_calls(RECALL.unpack(frame.body)[0])
            self.send(encode(Kind.RECALLED, b"".join(map(CALL.pack, back))))
            return
        if frame.kind == Kind.SHARE:
            self._share(shared=frame.body != b"\0")
            return
        if frame.kind == Kind.NOTICE:
            from skyward.node.task.interruption import received

            received(decode_json(frame.body))
            return
        if frame.kind == Kind.STACKS:
            # In a thread of its own: what sends may wait for the agent, and cancelling must not.
            threading.Thread(target=self._tell_stacks, name="skyward-stacks", daemon=True).start()
            return
        if frame.kind == Kind.STORE:
            self._store.received(frame.body)
            return
        if frame.kind == Kind.PEERS:
            self._directory.received(frame.body)
            return
        if frame.kind == Kind.KEEP:
            self._keeping.received(frame.body, fds)
            return
        (call,) = CALL.unpack_from(frame.body)
        with self._state:
            execution = self._executions.get(call)
            if execution is None and call not in self._over:
                self._early.setdefault(call, []).append((frame, fds))
                return
        if execution is not None:
            self._deliver(execution, frame, fds)
        else:
            for fd in fds:
                os.close(fd)

    def _tell_stacks(self) -> None:
        self.send(encode_json(Kind.STACKS, {"threads": thread_stacks(), "tasks": loop_tasks()}))

    def _share(self, *, shared: bool) -> None:
        """Start or stop another thread that reads while one runs a task."""
        with self._state:
            self._shared = shared
        if shared and self._take_back():
            self._receiving.release()

    def _deliver(self, execution: Execution, frame: Frame, fds: tuple[int, ...]) -> None:
        match frame.kind:
            case Kind.CANCEL:
                execution.interrupt(CancelReason(CANCEL.unpack(frame.body)[1]))
            case Kind.CREDIT:
                execution.acknowledged(CREDIT.unpack(frame.body)[2])
            case Kind.ITEM:
                execution.push(ITEM.unpack_from(frame.body)[1], decode(frame.body, ITEM.size, fds))
            case Kind.END:
                execution.end(ITEM.unpack_from(frame.body)[1], frame.body[ITEM.size :])

    def _return_calls(self, keep: int) -> list[int]:
        """Take the last calls out of the queue; nothing waits there while a thread is ready to read."""
        if not self._take_back() and not self._receiving.acquire(blocking=False):
            return []
        try:
            with contextlib.suppress(BlockingIOError):
                while data := receive(self._tasks, self._fds, socket.MSG_DONTWAIT):
                    self._accept(data)
            calls: list[int] = []
            while len(self._queue) > keep:
                body, fds = self._queue.pop()
                calls += CALL.unpack_from(body)
                with self._state:
                    self._early.pop(calls[-1], None)
                for fd in fds:
                    os.close(fd)
            return calls[::-1]
        finally:
            self._receiving.release()


def main() -> None:
    """Start a worker on the descriptors that the agent left open."""
    tasks, control = socket.socket(fileno=TASK_FD), socket.socket(fileno=CONTROL_FD)
    die_with_parent()
    config, plugins_pickle = read_start(tasks)
    os.chdir(config["directory"])
    sys.path.insert(0, config["directory"])
    _install_streams(config["slots"])
    bridge_when_imported()
    recycling.bound(share_of_memory())
    setting = Setting(facts=config["facts"])
    slot_table = SlotTable(SLOT_TABLE_FD, config["slots"])
    worker = WorkerProcess(tasks, control, slot_table, setting, config["slots"])
    with contextlib.ExitStack() as stack:
        try:
            _enter_plugins(stack, setting, plugins_pickle)
        except BaseException as error:
            from skyward.link.failure import dump_failure

            failure = dump_failure(error, data=True)
            worker.send(encode(Kind.FAILED, failure))
            _send_output()
            os._exit(78)
        signal.signal(INTERRUPT_SIGNAL, lambda _, frame: setting.interrupt_main(frame))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        worker.send(encode_json(Kind.READY, {"pid": os.getpid(), "python": sys.version.split()[0]}))
        worker.serve()
    _send_output()


def _enter_plugins(stack: contextlib.ExitStack, setting: Setting, plugins_pickle: bytes) -> None:
    if not plugins_pickle:
        return
    import pickle

    from skyward.plugin import entered

    setting.plugins = tuple(pickle.loads(plugins_pickle))
    stack.enter_context(entered(setting.plugins, "around_process", setting.info()))


def _install_streams(slots: int) -> None:
    """Make prints of Python code carry the call they belong to."""
    import faulthandler

    from skyward.node.worker.execution import current_call

    # A crash is reported also while stderr leads elsewhere.
    faulthandler.enable(DESCRIPTORS.copy(2))
    faulthandler.register(STACKS_SIGNAL, DUMP_FD)
    signal.pthread_sigmask(signal.SIG_BLOCK, {STACKS_SIGNAL})
    sys.stdout = TaggedStream(1, current_call)
    sys.stderr = TaggedStream(2, current_call, STDERR)


def _send_output() -> None:
    """Write out whatever is held back, because this process is about to end."""
    send_all(sys.stdout)
    send_all(sys.stderr)


def _flush(stream: Any) -> None:
    """Write out what is held back; user code may have replaced or closed the stream."""
    if type(stream) is TaggedStream:
        # A call's lines were sent when it ended.
        return
    try:
        stream.flush()
    except (OSError, ValueError, AttributeError):
        return


def _forget_directory_listings() -> None:
    import importlib

    importlib.invalidate_caches()


if __name__ == "__main__":
    main()
