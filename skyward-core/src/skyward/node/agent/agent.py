"""
The process on a node that never runs user code.

It starts and supervises workers and passes frames between them and the client.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from typing import Any

from skyward.errors import ProtocolError
from skyward.link.channel import Batch, Channel, Link
from skyward.link.frames import VERSION, Frame, Kind, decode_json, encode, encode_json
from skyward.link.messages import CALL, CANCEL, FUNCTION_DIGEST, TASK, TaskFlag, decode_start
from skyward.link.wire import KIND_AT
from skyward.node.agent.agent_watch import Watching
from skyward.node.agent.child_process import ChildProcess
from skyward.node.agent.deadlines import Deadlines
from skyward.node.agent.descendants import MARK, ended_children
from skyward.node.agent.fds import HeldFds, close_all
from skyward.node.agent.handshake import rendezvous_socket, welcome
from skyward.node.agent.last_answers import failure
from skyward.node.agent.line_flow import Lines, SpooledLines
from skyward.node.agent.listening import AgentListener
from skyward.node.agent.members import Members
from skyward.node.agent.neighbours import Neighbours
from skyward.node.agent.spool import Spool
from skyward.node.agent.stack_dumps import StackDumps, with_stack
from skyward.node.agent.succession import Succession
from skyward.node.agent.workers import Workers
from skyward.node.data.module_files import write_packed
from skyward.node.data.node_store import NodeStore
from skyward.node.data.peer_transfers import PeerTransfers
from skyward.node.data.result_store import ResultStore
from skyward.node.store.agent_store import AgentStore
from skyward.node.volumes.agent_volumes import AgentVolumes

_log = logging.getLogger(__name__)

_BACKLOG = 8 << 20


class Agent:
    """
    Serve one client.

    Args:
        loop: The loop to live in.
        directory: The node's directory, removed at the end.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, directory: str) -> None:
        self._loop, self._directory = loop, directory
        self._files_directory = os.path.join(directory, "files")
        self._batch = Batch(loop)
        self._client: Link | None = None
        self._drained_for = 0
        self._store = NodeStore(self._tell)
        self._members = Members(self._tell)
        self._workers = Workers(
            loop,
            self._batch,
            self._files_directory,
            members=self._members,
            lines=lambda: self._lines,
            tell=self._tell_ended,
            on_frame=self._on_worker_frame,
            on_put=self._store.keep_put,
        )
        processes = self._workers.processes
        self._lines = Lines(self._tell, processes.values)
        self._results: ResultStore | None = None
        self._succession: Succession | None = None
        self._dumps = StackDumps(loop, self._workers.running, self._answer)
        self._deadlines = Deadlines(loop, processes, self._dumps)
        self._watching = Watching(loop, self.leave, processes)
        self._neighbours = Neighbours(loop, self._store.blob, self._answer)
        self._orders = PeerTransfers(loop, self._store, self._tell, directory)
        self._shared = AgentStore(loop, directory, self._tell)
        self._volumes = AgentVolumes(loop, directory, self._tell, lambda: self._lines, self._fail)
        self._meeting = rendezvous_socket()
        self._said: dict[str, Any] = {}
        self._leaving = self.leaves_results = False
        self.finished = loop.create_future()

    def serve(self, sock: socket.socket) -> None:
        """Begin to serve the client at the other end of a socket."""
        self._client = Channel(self._loop, self._batch, sock, self._on_client_frame, self._on_client_closed)
        self._client.on_drained = self._resume_workers

    async def listen(self, session: str) -> None:
        """
        Serve the client that knows the session's name, over as many connections as it takes.

        Args:
            session: The name.
        """
        door = AgentListener(self._loop, self._batch, session, os.path.join(self._directory, "lease"))
        path = os.path.join(self._directory, "agent.sock")
        self._client = link = await door.open(path, self._on_client_frame, self._on_client_closed)
        link.on_drained, link.on_announced = self._resume_workers, self._store.wanted
        self._shared.serve(link)
        results, lines = (os.path.join(self._directory, name) for name in ("results", "lines"))
        kept = self._results = ResultStore(self._loop, link, results, on_stored=self._resume_workers)
        said = SpooledLines(self._tell, self._workers.processes.values, loop=self._loop, link=link, spool=Spool(lines))
        self._lines = said
        self._succession = Succession(self._loop, self._directory, door, kept, said, self._in_flight, self._answer)
        door.on_admitted = self._admitted

    def reap(self) -> None:
        """Collect children that ended, our own and adopted ones."""
        for pid, status, usage in ended_children():
            for reaped in (self._watching.reaped, self._shared.reaped, self._volumes.reaped):
                reaped(pid, status)
            process = self._workers.processes.pop(pid, None)
            if process is not None:
                self._batch.open()
                try:
                    process.gone(status, usage.ru_maxrss)
                finally:
                    self._batch.flush()

    def interrupt(self) -> None:
        """End everything at once, as the machine says; results that the client may not have stay on its disk."""
        if self._results is not None:
            self.leaves_results = self._results.save()
        self.leave()

    def leave(self) -> None:
        """End everything at once but what plugins hold around the node: the client is gone, or asks for it."""
        if self._leaving:
            return
        self._leaving = True
        self._watching.stop()
        for close in (self._neighbours.close, self._orders.close, self._shared.close, self._volumes.close):
            close()
        self._meeting.close()
        self._workers.leave(self._left)

    def _left(self) -> None:
        if self.finished.done():
            return
        self._workers.each(ChildProcess.kill)
        self._lines.close()
        if self._results is not None:
            self._results.close()
        if self._succession is not None:
            self._succession.close()
        self.finished.set_result(None)

    def _on_client_closed(self, error: Exception | None) -> None:
        if error is not None:
            # On stderr, where the client finds an agent's last words.
            _log.error("agent.left reason=%s", error)
        self.leave()

    def _on_client_frame(self, frame: Frame, fds: tuple[int, ...]) -> None:
        if self._leaving:
            close_all(fds)
            return
        match frame.kind:
            case Kind.TASK:
                self._task(frame, fds)
            case Kind.CREDIT | Kind.ITEM | Kind.END | Kind.RECALL | Kind.CANCEL | Kind.KEEP:
                self._to_control(frame, fds)
            case Kind.FUNCTION:
                self._store.add_function(frame.body, fds)
            case Kind.BLOB:
                self._store.add_blob(frame.body, fds)
            case Kind.DROP:
                self._drop(frame)
            case Kind.SERVE | Kind.FETCH | Kind.GIVE:
                self._orders.take(frame)
            case Kind.MEMBERS:
                self._workers.tell(self._members.received(frame.body))
            case Kind.PEERS:
                self._members.answered(frame.body)
            case Kind.FILES:
                write_packed(self._files_directory, frame.body, fds)
                self._workers.tell(encode(Kind.FILES))
            case Kind.LOG_READ:
                self._lines.read(CALL.unpack(frame.body)[0])
                self._resume_workers()
            case Kind.HELLO:
                self._welcome(decode_json(frame.body))
            case Kind.START:
                self._start(frame.body)
            case Kind.ASK:
                self._asked(decode_json(frame.body))
            case Kind.STORE:
                self._shared.received(frame.body)
            case Kind.REFRESH:
                self._workers.refresh()
            case Kind.STOP:
                self._workers.stop(decode_json(frame.body)["grace"], self._stopped)
            case _:
                raise ProtocolError(f"A client sent a {Kind(frame.kind).name} frame, which only agents send.")

    def _asked(self, question: dict[str, Any]) -> None:
        if "end_workers" in question:
            self._workers.stop(question["end_workers"], lambda: self._answer({"number": question["number"]}))
        elif self._succession is not None and self._succession.ask(question):
            return
        elif not (self._dumps.ask(question) or self._shared.ask(question) or self._volumes.ask(question)):
            self._neighbours.ask(question)

    def _welcome(self, hello: dict[str, Any]) -> None:
        if hello.get("version") != VERSION:
            self._fail(f"the client speaks protocol {hello.get('version')} and this node speaks {VERSION}")
            return
        self._said = welcome(self._meeting.getsockname()[1], hello.get("addresses") or ())
        self._tell(encode_json(Kind.WELCOME, self._said))

    def _start(self, body: bytes) -> None:
        if self._workers.started:
            raise ProtocolError("A client started an agent that was started already.")
        config, plugins = decode_start(body)
        os.environ.update({MARK: config["mark"]})
        self._watching.start(config | {"directory": self._files_directory}, self._client)
        facts: dict[str, Any] = {name: self._said[name] for name in ("hostname", "network") if name in self._said}
        self._workers.start(config, plugins, facts)

    def _task(self, frame: Frame, fds: tuple[int, ...]) -> None:
        process = self._workers.of(frame)
        call, timeout, _, _, flags, digest = TASK.unpack_from(frame.body)
        if process is None:
            close_all(fds)
            self._tell(encode(Kind.RECALLED, CALL.pack(call), lane=frame.lane))
            return
        if self._store.refused and (refusal := self._store.refusal(frame)):
            close_all(fds)
            self._tell(refusal)
            return
        if digest not in process.known:
            function, segments = self._store.function_frame(digest)
            process.known.add(digest)
            process.tasks.send(function, [segment.fd for segment in segments], segments)
        hold: object = HeldFds(fds) if fds else None
        if flags & TaskFlag.STORED:
            stored = self._store.stored(frame.body, TASK.size)
            hold = (hold, stored)
            fds = (*fds, *(segment.fd for segment in stored))
        process.began(call, timeout)
        process.tasks.send(encode(Kind.TASK, frame.body, fds=len(fds)), fds, hold)
        if timeout:
            self._deadlines.watch()
        if self._results is not None:
            self._results.begins(call, streams=bool(flags & TaskFlag.STREAM))

    def _admitted(self) -> None:
        self._shared.reset()
        if self._succession is not None:
            self._succession.admitted()

    def _to_control(self, frame: Frame, fds: tuple[int, ...]) -> None:
        process = self._workers.of(frame)
        hold = HeldFds(fds)
        if process is not None:
            process.control.send(encode(frame.kind, frame.body, fds=len(fds)), fds, hold)
            if frame.kind == Kind.CANCEL and (call := CANCEL.unpack(frame.body)[0]) in process.in_flight:
                # It has some seconds to stop, then its process is ended.
                self._deadlines.cancelled(process, call)
        elif frame.kind == Kind.RECALL:
            self._tell(encode(Kind.RECALLED, b"", lane=frame.lane))

    def _drop(self, frame: Frame) -> None:
        self._store.drop(frame.body)
        if len(frame.body) == FUNCTION_DIGEST:
            for process in self._workers.running():
                process.forget(frame.body)

    def _stopped(self) -> None:
        self._tell(encode(Kind.STOPPED))
        if self._client is not None:
            self._client.end()

    def _on_worker_frame(self, process: ChildProcess, frame: Frame, fds: tuple[int, ...]) -> None:
        if self._leaving:
            close_all(fds)
            return
        lane = process.lane
        match frame.kind:
            case Kind.RESULT if self._lines.holding:
                process.ended(CALL.unpack_from(frame.body)[0])
                self._lines.after(lambda fds: self._result(process, lane, frame, fds), fds)
            case Kind.RESULT:
                self._result(process, lane, frame, fds)
            case Kind.EMIT:
                self._lines.emit(lane, frame, fds)
                self._mind_backlog()
            case Kind.ITEM | Kind.CREDIT | Kind.KEEP:
                self._tell(encode(frame.kind, frame.body, lane=lane, fds=len(fds)), fds, HeldFds(fds))
            case Kind.RECALLED:
                for at in range(0, len(frame.body), CALL.size):
                    process.ended(CALL.unpack_from(frame.body, at)[0])
                self._tell(encode(Kind.RECALLED, frame.body, lane=lane))
            case Kind.READY:
                self._workers.ready(process, frame)
            case Kind.RETIRE:
                process.retires = True
            case Kind.PEERS:
                self._members.asked(process, frame.body)
            case Kind.STORE:
                self._shared.asked(process)
            case Kind.FAILED:
                process.kill()
                self._tell(encode(Kind.FAILED, frame.body))

    def _result(self, process: ChildProcess, lane: int, frame: Frame, fds: tuple[int, ...]) -> None:
        call = CALL.unpack_from(frame.body)[0]
        if self._drained_for != self._batch.number and self._lines.reading:
            self._drained_for = self._batch.number
            process.drain_output(call if len(process.in_flight) == 1 else 0)
        process.ended(call)
        body = with_stack(process, frame.body) if process.stacks else frame.body
        result = encode(Kind.RESULT, body, lane=lane, fds=len(fds))
        if self._results is None:
            self._tell(result, fds, HeldFds(fds) if fds else None)
        else:
            self._results.send(result, fds, HeldFds(fds))
            self._mind_backlog()
        self._workers.answered(process, lane)

    def _tell_ended(self, frame: bytes) -> None:
        """Send what a process leaves at its end, of which another client needs the results."""
        if self._results is not None and frame[KIND_AT] == Kind.RESULT:
            self._results.send_failed(frame)
        else:
            self._tell(frame)

    def _tell(self, frame: bytes, fds: tuple[int, ...] = (), hold: object = None) -> None:
        if self._client is not None:
            self._client.send(frame, fds, hold)
            if self._client.backlog > _BACKLOG:
                self._mind_backlog()

    def _answer(self, said: dict[str, Any]) -> None:
        self._tell(encode_json(Kind.ANSWER, said))

    def _in_flight(self) -> list[tuple[int, int]]:
        return [(call, process.lane) for process in self._workers.processes.values() for call in process.in_flight]

    def _mind_backlog(self) -> None:
        """Read no more from workers while too much waits for the client, and is nowhere else."""
        stored = self._results.on_disk if self._results is not None else 0
        behind = self._client is not None and self._client.backlog - stored > _BACKLOG
        if behind or self._lines.holding:
            self._workers.each(lambda process: process.tasks.pause())

    def _resume_workers(self) -> None:
        self._workers.each(lambda process: process.tasks.resume())
        self._mind_backlog()

    def _fail(self, why: str) -> None:
        self._tell(failure(why, None))
