"""What tasks put at one node: what stands for it here, and its content when it is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skyward.engine.nodes.buffer_supply import StoredBuffers
from skyward.engine.pool.event_loop import EngineLoop
from skyward.errors import ProtocolError
from skyward.link.absent import Absent
from skyward.link.frames import Frame
from skyward.link.messages import BLOB
from skyward.link.segment import Segment
from skyward.model.spec.trust_setting import Data

if TYPE_CHECKING:
    from skyward.engine.nodes.node_link import NodeLink

GIVES_WITHIN = 30.0
"""Seconds in which a node sends what it is asked for, and beyond them one for each `SLOWEST` bytes of it."""

SLOWEST = 64 << 10
"""Bytes a second that the line from a node carries at least."""


class _Asked:
    """Content that was asked for."""

    __slots__ = ("absent", "late", "waiting")

    def __init__(self, absent: Absent, late: asyncio.TimerHandle) -> None:
        self.absent = absent
        self.late = late
        self.waiting: list[Callable[[str], None]] = []


class RemotePuts:
    """
    Know what tasks put at one node; lives in the engine's loop.

    Args:
        engine: The loop.
        link: The node's link.
        where: What messages call the node.
        trust: What of its values is opened as data; None opens anything.
        home: What the Refs of its pool belong to.
    """

    def __init__(self, engine: EngineLoop, link: NodeLink, where: str, trust: Data | None, home: Any) -> None:
        self.where = where
        self._engine = engine
        self._link = link
        self._trust = trust
        self._home = home
        self._asked: dict[bytes, _Asked] = {}
        self._closed = False

    def there(self, name: bytes, size: int) -> Segment:
        """
        Return what stands for something that a result names.

        Raises:
            ProtocolError: If it was named before.
        """
        absent = Absent(name, size, home=self._home, trust=self._trust, origin=self, post=self._engine.post)
        self._link.buffers.hold(StoredBuffers(name, size, absent))
        return absent

    def has(self, name: bytes) -> bool:
        """Return whether the node has a buffer."""
        return not self._closed and self._link.buffers.has(name)

    def ask(self, absent: Absent, done: Callable[[str], None]) -> None:
        """Ask the node for content; `done` is given why it does not come, or nothing."""
        asked = self._asked.get(absent.name)
        if asked is None:
            within = GIVES_WITHIN + absent.size / SLOWEST
            late = self._engine.loop.call_later(within, self._late, absent, within)
            asked = self._asked[absent.name] = _Asked(absent, late)
            self._link.give(absent.name)
        asked.waiting.append(done)

    def announced(self, frame: Frame) -> bool:
        """
        Record that content is about to come.

        Raises:
            ProtocolError: If it was not asked for, or is of another size.
        """
        self._asked_of(frame)
        return True

    def came(self, frame: Frame, fds: tuple[int, ...]) -> None:
        """
        Take content.

        Raises:
            ProtocolError: If it was not asked for, is of another size, or no memory.
        """
        asked = self._asked_of(frame)
        if len(fds) != 1:
            raise ProtocolError(f"A node sent a value with {len(fds)} descriptors, not one.")
        segment = Segment(fds[0], 0)
        segment.expect(asked.absent.size)
        asked.absent.came(segment)
        self._settle(asked.absent.name, lambda done: done(""))

    def gone(self, name: bytes) -> None:
        """Record that the node has a buffer no more; what waits for it looks elsewhere."""
        asked = self._asked.get(name)
        if asked is not None:
            self._settle(name, asked.absent.fetch)

    def close(self) -> None:
        """Record that the node is lost."""
        self._closed = True
        for name in list(self._asked):
            self.gone(name)

    def _asked_of(self, frame: Frame) -> _Asked:
        if len(frame.body) != BLOB.size:
            raise ProtocolError("A node sent a BLOB frame that is cut off.")
        name, size = BLOB.unpack(frame.body)
        asked = self._asked.get(name)
        if asked is None:
            raise ProtocolError(f"A node sent the value {name.hex()[:16]}, which it was not asked for.")
        if size != asked.absent.size:
            raise ProtocolError(f"A node sent a value of {size} bytes, of which it said {asked.absent.size}.")
        return asked

    def _settle(self, name: bytes, tell: Callable[[Callable[[str], None]], None]) -> None:
        asked = self._asked.pop(name)
        asked.late.cancel()
        for done in asked.waiting:
            tell(done)

    def _late(self, absent: Absent, within: float) -> None:
        """Refuse a node that does not send what it has."""
        why = f"{self.where} did not send a value of {absent.size} bytes within GIVES_WITHIN, {within:.0f} s."
        self._closed = True
        self._settle(absent.name, absent.fetch)
        self._link.refuse(ProtocolError(why))
