"""
The targets that need no agent: the parser, the codecs, and a client's view of a node, in a world of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from array import array

from fuzz_findings import Broken, Watch
from fuzz_scripts import EVENT, OUTPUT, WORKER, Step

from skyward.engine.nodes.node_shell import NodeShell
from skyward.errors import ProtocolError, TransportError
from skyward.link import messages
from skyward.link.channel import Batch, Channel
from skyward.link.envelope import Envelope, headline_of
from skyward.link.frames import Frame, Kind, Parser, decode_json, encode
from skyward.link.messages import Status
from skyward.link.payload import Payload, decode, views
from skyward.link.payload_parts import read_parts
from skyward.model.instances.instance import InstanceInfo
from skyward.model.instances.machine import Instance
from skyward.node.agent.fds import close_all
from tests.link.data.watching import known_names, opened
from tests.renting import rented

_NAMES = known_names()
_TURNS = 200


def run_parser(steps: list[Step]) -> None:
    """However a stream is cut, it holds the same frames."""
    pieces = [piece for step in steps for piece in step.pieces()]
    cut, whole = _fed(pieces), _fed([b"".join(pieces)])
    if cut != whole:
        raise Broken("a stream that is cut holds other frames")


def _fed(pieces: list[bytes]) -> tuple[list[Frame], int] | None:
    parser, frames = Parser(), []
    try:
        for piece in pieces:
            frames += parser.feed(piece)
    except ProtocolError:
        return None
    return frames, parser.pending


def run_codecs(steps: list[Step]) -> None:
    """Decode the body of each step."""
    for step in steps:
        _decode(step)


def _decode(step: Step) -> None:
    body, at = step.body, step.lane % 40
    with contextlib.suppress(ProtocolError):
        match step.kind % 9:
            case 0 | 1:
                _look_at(decode(body, at, step.descriptors()), body[at:])
            case 2:
                read_parts(body, at)
            case 3:
                messages.decode_lines(body)
            case 4:
                if b"".join(map(messages.CALL.pack, messages.decode_calls(body))) != body:
                    raise Broken("calls are others when they are written again")
            case 5:
                messages.decode_facts(body)
            case 6:
                decode_json(body)
            case 7:
                _, did = opened(body, _NAMES)
                if did:
                    raise Broken(f"what was opened as data did {did[0]}")
            case 8:
                headline_of(body)
                with contextlib.suppress(ValueError):
                    Envelope.decode(body)


def _look_at(payload: Payload, body: bytes | None = None) -> None:
    """Read what a payload says it holds."""
    if body is not None and payload.encode() != body:
        raise Broken("a payload is another when it is written again")
    if not payload.parts or payload.size > 4 << 20:
        return
    if [len(view) for view in views(payload)] != [part.size for part in payload.parts]:
        raise Broken("a payload's parts are not as long as its table says")


class World:
    """A loop that is stepped by hand, with a link that is fed, and a healthy one beside it."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.now = 1000.0
        self.closed_with: list[Exception | None] = []
        self.loop = asyncio.new_event_loop()
        self.loop.time = lambda: self.now  # type: ignore[method-assign]
        self.loop.set_exception_handler(lambda _, context: watch.note("loop", context.get("exception")))
        self.ours, self.peer = socket.socketpair()
        healthy, self._probe = socket.socketpair()
        for sock in (self.peer, self._probe):
            sock.setblocking(False)
        self._healthy = Channel(self.loop, Batch(self.loop), healthy, self._echo, lambda error: None)
        self._answers = Parser()

    def play(self, steps: list[Step]) -> None:
        """Take all steps, and then see that the links are what they should be."""
        for step in steps:
            self.take(step)
        self.turn(3)
        self.check()
        self.peer.close()
        self.turn(4)
        self.check()
        self.closed_once()

    def closed_once(self) -> None:
        """See that the link was closed, and by nothing but what may close one."""
        if len(self.closed_with) != 1:
            raise Broken(f"a link whose other end is closed was closed {len(self.closed_with)} times")
        error = self.closed_with[0]
        if error is not None and not isinstance(error, TransportError):
            raise error

    def take(self, step: Step) -> None:
        """Take one step."""
        if step.way == EVENT:
            self.event(step)
            self.turn(2)
        elif step.way in (WORKER, OUTPUT):
            self.from_worker(step)
        else:
            self.send(self.peer, step)

    def event(self, step: Step) -> None:
        """Let something happen that is no frame."""

    def from_worker(self, step: Step) -> None:
        """Let a worker send something."""

    def send(self, sock: socket.socket, step: Step) -> None:
        """Send what a step holds, and let the loop read it."""
        fds = step.descriptors()
        try:
            pieces = step.pieces()
            for piece in pieces:
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
                # A link that was closed, or one that is full and not read, takes nothing more.
                with contextlib.suppress(OSError):
                    sock.sendmsg([piece], ancillary)
                close_all(tuple(fds))
                fds = []
                # Frames of which several are read at once, else.
                if len(pieces) > 1 or not step.fds & 0x40:
                    self.turn(1)
        finally:
            close_all(tuple(fds))

    def turn(self, times: int) -> None:
        """Let the loop run so many rounds."""
        for _ in range(times):
            self.loop.call_soon(self.loop.stop)
            self.loop.run_forever()
            self.drain()

    def drain(self) -> None:
        """Read what the end under test sends."""
        received(self.peer)

    def check(self) -> None:
        """See that the healthy link answers."""
        self._probe.send(encode(Kind.CREDIT, b"probe"))
        for _ in range(_TURNS):
            self.turn(1)
            if self._answers.feed(received(self._probe)):
                return
        raise Broken("the healthy link answers no more")

    def close(self) -> None:
        """Let go of everything."""
        for sock in (self.ours, self.peer, self._probe):
            sock.close()
        self._healthy.close()
        self.loop.close()

    def _echo(self, frame: Frame, fds: tuple[int, ...]) -> None:
        self._healthy.send(encode(frame.kind, frame.body))


def received(sock: socket.socket) -> bytes:
    """Read what there is; descriptors are dropped by the kernel."""
    data = b""
    with contextlib.suppress(OSError):
        while piece := sock.recv(1 << 17):
            data += piece
    return data


class ShellWorld(World):
    """A client's view of a node that sends anything."""

    def __init__(self, watch: Watch, flags: int) -> None:
        super().__init__(watch)
        self.batch = Batch(self.loop)
        instance = Instance(id="i", node=0, provider="sham")
        self._shell = NodeShell(self, 0, rented(instance), InstanceInfo())  # type: ignore[arg-type]
        self._shell.host = self  # type: ignore[assignment]
        self._shell.listener.call_frame = self._on_call_frame
        self._shell.listener.emitted = lambda shell, emitted: _look_at(emitted.payload)
        self.connect()
        if flags & 1:
            self._shell._ready.set_result(None)
        if flags & 2:
            self._shell._refreshed = self.loop.create_future()

    def connect(self) -> None:
        """Join the view with its end of the socket."""
        Channel(self.loop, self.batch, self.ours, self._shell._on_frame, self._on_closed)

    def last_words(self) -> str:
        """Stand in for the host."""
        return "-"

    def event(self, step: Step) -> None:
        """Let the client ask for something, or the node's end be shut down."""
        match step.kind % 3:
            case 0:
                self._shell._refreshed = self.loop.create_future()
            case 1:
                self._shell.leaving = True
            case 2:
                with contextlib.suppress(OSError):
                    self.peer.shutdown(socket.SHUT_WR)

    def _on_closed(self, error: Exception | None) -> None:
        self.closed_with.append(error)
        self._shell._on_closed(error)
        if not self._shell._ready.done() or not self._shell._stopped.done():
            raise Broken("a node whose link is closed is still waited for")

    @staticmethod
    def _on_call_frame(shell: NodeShell, frame: Frame, fds: tuple[int, ...]) -> None:
        """Read what the dispatcher reads."""
        match frame.kind:
            case Kind.RESULT:
                status = messages.RESULT.unpack_from(frame.body)[1]
                if status == Status.OK:
                    _look_at(decode(frame.body, messages.RESULT.size, fds))
                    return
                close_all(fds)
                if status == Status.FAILED:
                    messages.decode_facts(frame.body[messages.RESULT.size :])
            case Kind.ITEM:
                messages.ITEM.unpack_from(frame.body)
                _look_at(decode(frame.body, messages.ITEM.size, fds))
            case Kind.CREDIT:
                messages.CREDIT.unpack(frame.body)
            case Kind.RECALLED:
                messages.decode_calls(frame.body)
