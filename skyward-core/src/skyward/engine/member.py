"""A ready node as the dispatch sees it."""

from __future__ import annotations

from skyward.engine.node_link import NodeLink


class Member:
    """
    Hold a ready node as the dispatch sees it.

    Args:
        index: What its calls are kept under: its place in the pool, until it is set aside.
        link: Its connection.
        where: The node and instance, in words.
        lanes: For each lane its number, its rank and its slots.
    """

    __slots__ = ("index", "lanes", "link", "node", "where")

    def __init__(self, index: int, link: NodeLink, where: str, lanes: tuple[tuple[int, int, int], ...]) -> None:
        self.index = index
        self.node = index
        self.link = link
        self.where = where
        self.lanes = lanes
