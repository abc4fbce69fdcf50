"""A ready node as the dispatch sees it."""

from __future__ import annotations

from skyward.engine.node_link import NodeLink
from skyward.model.trust import Data


class Member:
    """
    Hold a ready node as the dispatch sees it.

    Args:
        index: What its calls are kept under: its place in the pool, until it is set aside.
        link: Its connection.
        where: The node and instance, in words.
        lanes: For each lane its number, its rank and its slots.
        trust: What of its answers is opened as data; None opens anything.
    """

    __slots__ = ("index", "lanes", "link", "node", "trust", "where")

    def __init__(
        self,
        index: int,
        link: NodeLink,
        where: str,
        lanes: tuple[tuple[int, int, int], ...],
        trust: Data | None = None,
    ) -> None:
        self.index = index
        self.node = index
        self.link = link
        self.where = where
        self.lanes = lanes
        self.trust = trust
