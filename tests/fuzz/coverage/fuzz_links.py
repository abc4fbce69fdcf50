"""
The targets of links that may be cut: either end of one, with a hostile peer at the other.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import Any

from fuzz_agent import AgentWorld
from fuzz_findings import Broken, Watch
from fuzz_scripts import FDS, KIND, LENGTH, RAW, Step
from fuzz_targets import ShellWorld, World, received

from skyward.errors import ProtocolError, TransportError
from skyward.link.cells import CELL, CHUNK, COUNT, DATA, NUMBERED, OPENING, SIZE, CellParser, CellType, cell
from skyward.link.frames import VERSION, Frame, Kind, encode
from skyward.link.inbox import Inbox
from skyward.link.messages import CALL, RESULT
from skyward.link.order import sizes_of
from skyward.link.packed import NAME, pack as pack_bytes
from skyward.link.payload_making import pack
from skyward.link.wire import Wire
from skyward.node.agent.fds import close_all

SESSION = "s"

_ROOM = 4000
_MOST = _ROOM + 2 * CHUNK
_LARGEST = 1 << 21


class Peer:
    """The hostile end: it writes what a script says, and checks what it reads."""

    def __init__(self) -> None:
        self._data = b""
        self._counted: list[bytes] = []
        self._at: int | None = 0

    def hello(self, received: Any = None, *, again: bool = False) -> bytes:
        """Begin a connection; the truth is said about what has arrived, unless something else is given."""
        if again:
            # What is still on the way now cannot be told from what comes again.
            self._at = None
        else:
            self._data = b""
        if received is None:
            received = len(self._counted)
        # An end that lies about what it has cannot tell any more which cell comes next.
        known = isinstance(received, int) and 0 <= received <= len(self._counted)
        self._at = received if known and self._at is not None else None
        hello = {"version": VERSION, "session": SESSION, "received": received, "unpacks": [NAME]}
        return cell(CellType.HELLO, json.dumps(hello).encode())

    def acknowledge(self) -> bytes:
        """Say how much has arrived."""
        return cell(CellType.ACK, COUNT.pack(len(self._counted)))

    def read(self, data: bytes) -> None:
        """Take what the end under test sends; a cell that is sent again must be the same."""
        try:
            CellParser().feed(self._data + data)
        except ProtocolError as error:
            raise Broken(f"our own parser refuses what is sent: {error}") from error
        self._data += data
        while len(self._data) >= CELL.size:
            length, kind = CELL.unpack_from(self._data)
            if len(self._data) < CELL.size + length:
                return
            self._take(CellType(kind), self._data[: CELL.size + length])
            self._data = self._data[CELL.size + length :]

    def frames(self) -> list[Frame]:
        """Put together what has arrived."""
        found: list[Frame] = []

        def take(frame: Frame, fds: tuple[int, ...]) -> None:
            close_all(fds)
            found.append(frame)

        inbox = Inbox(take, lambda _: True)
        try:
            for piece in CellParser().feed(b"".join(self._counted)):
                inbox.take(piece)
        finally:
            inbox.close()
        return found

    def _take(self, kind: CellType, data: bytes) -> None:
        if kind not in NUMBERED or self._at is None:
            return
        if self._at < len(self._counted):
            if self._counted[self._at] != data:
                raise Broken("a cell that is sent again is another")
        else:
            self._counted.append(data)
        self._at += 1


def cells_of(step: Step) -> bytes:
    """Render the cells that a step sends: right ones of its frame, or wrong ones of its bytes."""
    match step.way:
        case way if way == RAW:
            return step.body
        case way if way == LENGTH:
            return CELL.pack((step.lane | step.fds << 14) & 0xFFFFFFFF, step.kind % 11) + step.body
        case way if way == KIND:
            return cell(step.kind % 10, step.body)  # type: ignore[arg-type]
        case way if way == FDS:
            return _opening(step, [step.lane * 97] * (step.fds >> 3)) + _pieces(step.body, step.fds & 7)
    frame = step._replace(fds=step.fds & ~7).wire()
    sizes: list[int] = []
    if step.fds & 7:
        with contextlib.suppress(Exception):
            sizes = sizes_of(Frame(step.frame_kind, 0, 1, step.body))
    if not sizes or sum(sizes) > _LARGEST:
        return cell(CellType.PACKED_FRAMES, pack_bytes(frame, 1)) if step.fds & 32 else cell(CellType.FRAME, frame)
    return _opening(step, sizes) + _pieces(bytes(sum(sizes)), step.lane, packed=step.fds & 32)


def _opening(step: Step, sizes: list[int]) -> bytes:
    frame = encode(step.frame_kind, step.body, fds=min(len(sizes), 255)) if step.frame_kind < 256 else b""
    prefix = OPENING.pack(step.lane, min(len(sizes), 255)) + b"".join(map(SIZE.pack, sizes))
    return cell(CellType.OPEN, frame, prefix)


def _pieces(data: bytes, stream: int, *, packed: int = 0) -> bytes:
    cut = (data[at : at + CHUNK] for at in range(0, len(data), CHUNK))
    if packed:
        return b"".join(cell(CellType.PACKED, pack_bytes(piece, 1, 8), DATA.pack(stream)) for piece in cut)
    return b"".join(cell(CellType.DATA, piece, DATA.pack(stream)) for piece in cut)


class Cells(World):
    """A world whose link carries cells."""

    hostile: Peer

    def event(self, step: Step) -> None:
        """Let a connection be cut or greeted again, or something be acknowledged, asked, or sent to the peer."""
        match step.kind % 8:
            case 0:
                self.again(None)
            case 1:
                self.again((step.lane, -1, 1 << 70, "1", None, True, [], 0)[step.fds % 8])
            case 2:
                self.push(self.hostile.acknowledge())
            case 3:
                self.push(cell(CellType.PING) * (step.fds * 8))
            case 4:
                self.push(self.hostile.hello(-1 - step.lane if step.fds & 1 else step.lane, again=True))
            case 5:
                self.push(cell(CellType.ACK, COUNT.pack(step.lane)))
            case 6:
                self.now += 0.03
            case 7:
                self.say(step)

    def again(self, received: Any) -> None:
        """Break the connection, and begin another with a claim of what has arrived."""
        raise NotImplementedError

    def push(self, data: bytes) -> None:
        """Send bytes to the end under test."""
        raise NotImplementedError

    def say(self, step: Step) -> None:
        """Have the end under test send something."""

    def send(self, sock: socket.socket, step: Step) -> None:
        """Send the cells of a step, in pieces."""
        data = cells_of(step)
        cut = len(data) * (step.how >> 4) // 16
        for piece in (data[:cut], data[cut:]):
            if piece:
                self.push(piece)
        if not step.fds & 0x40:
            self.turn(1)


class Line:
    """One connection in memory; what is not read takes room."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.closed = False

    def write(self, data: bytes) -> None:
        """Keep bytes until they are read."""
        if not self.closed:
            self.data += data

    def room(self) -> int:
        """Count the bytes that can be taken now."""
        return _ROOM - len(self.data)

    def close(self) -> None:
        """Take nothing more."""
        self.closed = True


class WireWorld(Cells, ShellWorld):
    """A client's view of a node that it reaches by connections which come and go."""

    def __init__(self, watch: Watch, flags: int) -> None:
        self.hostile = Peer()
        self._deaf = flags & 20 == 20
        self._slow = bool(flags & 32)
        self._said: list[bytes] = []
        self._line = Line()
        super().__init__(watch, flags)
        if not flags & 8:
            self.push(self.hostile.hello())

    def connect(self) -> None:
        """Join the node's view with a wire instead of a socket."""
        self._wire = Wire(self.loop, self.batch, SESSION, on_frame=self._shell._on_frame, on_closed=self._on_closed)
        if self._slow:
            # What it sends is compressed then, if the peer reads that.
            self._wire._outbox._line.rate = 1e6
        self._wire.attach(self._line)

    def again(self, received: Any) -> None:
        """Cut the line, and attach another."""
        self._wire.lost(self._line, None)
        if self._wire.closed:
            return
        self._line = Line()
        self._wire.attach(self._line)
        self.push(self.hostile.hello(received))

    def push(self, data: bytes) -> None:
        """Have the wire hear bytes, always in the same memory."""
        buffer = bytearray(data)
        with memoryview(buffer) as view:
            self._wire.receive(self._line, view)
        buffer[:] = bytes(len(buffer))
        if len(self._line.data) > _MOST:
            raise Broken("what nobody reads fills memory")

    def say(self, step: Step) -> None:
        """Send a result, small or large, with a number of its own."""
        if self._wire.closed:
            return
        call = CALL.pack(len(self._said))
        payload = pack([bytes((step.fds, step.lane)) * ((1, 1, 100, 150_000)[step.lane % 4])])
        body = call + bytes(RESULT.size - CALL.size) + payload.encode()
        self._said.append(call)
        self._wire.send(encode(Kind.RESULT, body, fds=len(payload.fds)), payload.fds, payload)

    def drain(self) -> None:
        """Read what was sent, unless the peer never does."""
        super().drain()
        if not self._deaf and self._line.data:
            data = bytes(self._line.data)
            self._line.data.clear()
            self.hostile.read(data)
            self._wire.flush()

    def play(self, steps: list[Step]) -> None:
        """Take all steps; then the node is given up, as one that cannot be reached."""
        for step in steps:
            self.take(step)
        self.turn(3)
        self.check()
        self._wire.lost(self._line, None)
        self._wire.close(TransportError("gone"))
        self.turn(3)
        self.check()
        calls = [frame.body[: CALL.size] for frame in self.hostile.frames()]
        if len(set(calls)) != len(calls) or not set(calls) <= set(self._said):
            raise Broken("a frame arrives twice, or was never sent")
        self.closed_once()

    def close(self) -> None:
        """Let go of everything."""
        if not self._wire.closed:
            self._wire.close()
        super().close()


class DoorWorld(Cells, AgentWorld):
    """An agent behind its door, and the clients that come to it."""

    def __init__(self, watch: Watch, flags: int) -> None:
        self.hostile = Peer()
        self._deaf = bool(flags & 64)
        super().__init__(watch, flags)

    def event(self, step: Step) -> None:
        """Do to the link what can be done to one, and to workers what can be done to them."""
        (Cells if step.lane & 1 else AgentWorld).event(self, step)

    def connect(self) -> None:
        """Have the agent listen, and come to its door."""
        os.makedirs(self._agent._directory, exist_ok=True)
        self.loop.run_until_complete(self._agent.listen(SESSION))
        self._knock(None)

    def tell(self, frame: bytes) -> None:
        """Send a frame as a client does."""
        self.push(cell(CellType.FRAME, frame))

    def again(self, received: Any) -> None:
        """Leave, and come again."""
        self.peer.close()
        self.turn(2)
        self._knock(received)

    def push(self, data: bytes) -> None:
        """Send bytes, as long as anyone takes them."""
        view = memoryview(data)
        for _ in range(len(data) // 4096 + 20):
            if not view:
                return
            try:
                view = view[self.peer.send(view) :]
            except BlockingIOError:
                self.turn(1)
            except OSError:
                return
            self.turn(1)

    def drain(self) -> None:
        """Read what the agent sends, unless the peer never does."""
        if not self._deaf:
            self.hostile.read(received(self.peer))
        self.drain_workers()

    def play(self, steps: list[Step]) -> None:
        """Take all steps; then the client says goodbye."""
        for step in steps:
            self.take(step)
        self.turn(3)
        self.check()
        self._deaf = False
        self.again(None)
        self.push(cell(CellType.BYE))
        self.turn(6)
        self.check()
        client = self._agent._client
        if client is not None and not client.closed:  # type: ignore[attr-defined]
            client.close()
        self.hostile.frames()
        self.closed_once()

    def close(self) -> None:
        """Let go of everything, the door too."""
        self.peer.close()
        client: Any = self._agent._client
        client._on_received.__self__._server.close()
        self.turn(3)
        super().close()

    def _knock(self, received: Any) -> None:
        self.peer.close()
        self.peer = socket.socket(socket.AF_UNIX)
        self.peer.setblocking(False)
        with contextlib.suppress(OSError):
            self.peer.connect(os.path.join(self._agent._directory, "agent.sock"))
        self.turn(3)
        self.push(self.hostile.hello(received))
        self.turn(2)
