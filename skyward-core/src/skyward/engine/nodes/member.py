"""A ready node as the dispatch sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from skyward.engine.nodes.node_link import NodeLink
from skyward.engine.nodes.remote_puts import RemotePuts
from skyward.engine.pool.event_loop import EngineLoop
from skyward.link.frames import Frame
from skyward.link.segment import Segment
from skyward.model.spec.trust_setting import Data


class Member:
    """
    Hold a ready node as the dispatch sees it.

    Args:
        index: What its calls are kept under: its place in the pool, until it is set aside.
        link: Its connection.
        where: The node and instance, in words.
        lanes: For each lane its number, its rank and its slots.
        trust: What of its answers is opened as data; None opens anything.
        refs: What the pool's Refs belong to.
    """

    __slots__ = ("index", "lanes", "link", "node", "puts", "refs", "trust", "where")

    def __init__(
        self,
        index: int,
        link: NodeLink,
        where: str,
        lanes: tuple[tuple[int, int, int], ...],
        trust: Data | None = None,
        refs: object = None,
    ) -> None:
        self.index = index
        self.node = index
        self.link = link
        self.where = where
        self.lanes = lanes
        self.trust = trust
        self.refs = refs
        self.puts: RemotePuts | None = None

    @property
    def there(self) -> Callable[[bytes, int], Segment] | None:
        """Return what makes something stand for what stays at the node."""
        return None if self.puts is None else self.puts.there

    def begin(self, engine: EngineLoop, lacking: Callable[[Any, str], None]) -> None:
        """
        Record what tasks put there from now on.

        Args:
            engine: The loop.
            lacking: Called with a call that needs what another node has lost, and what to say.
        """
        self.puts = self.link.buffers.puts = RemotePuts(engine, self.link, self.where, self.trust, self.refs)
        self.link.on_lacking = lacking

    def end(self) -> None:
        """Record that the node is gone, and what tasks put there with it."""
        if self.puts is not None:
            self.puts.close()

    def announced(self, frame: Frame) -> bool:
        """Record that something that a task put is about to come."""
        return self.puts is not None and self.puts.announced(frame)

    def came(self, frame: Frame, fds: tuple[int, ...]) -> None:
        """Take something that a task put."""
        if self.puts is not None:
            self.puts.came(frame, fds)
