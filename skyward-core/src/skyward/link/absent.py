"""The content of a value that a task put: at its node, until this machine asks for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol

from skyward.errors import RefError
from skyward.link.segment import Segment, aligned

if TYPE_CHECKING:
    from skyward.model.spec.trust_setting import Data

__all__ = ["Absent", "Origin", "returned"]


class Origin(Protocol):
    """A node that may have the content."""

    where: str

    def has(self, name: bytes) -> bool:
        """Return whether it has a buffer."""

    def ask(self, absent: Absent, done: Callable[[str], None]) -> None:
        """Ask for the content, in the engine's loop; `done` is given why it does not come, or nothing."""


class Absent(Segment):
    """
    Stand for a segment that is at a node, and become it when its content comes.

    Args:
        name: What nodes call it.
        size: Bytes in it, as the node says.
        home: What the Refs of its pool belong to.
        trust: What of it is opened as data; None opens anything.
        origin: The node.
        post: Has something done in the engine's loop.
    """

    __slots__ = ("home", "name", "origin", "places", "post", "trust")

    def __init__(
        self,
        name: bytes,
        size: int,
        *,
        home: Any,
        trust: Data | None,
        origin: Origin,
        post: Callable[[Callable[[], None]], object],
    ) -> None:
        self.fd = -1
        self.size = size
        self.name = name
        self.home = home
        self.trust = trust
        self.origin = origin
        self.post = post
        self.places = [origin]

    @property
    def lost(self) -> bool:
        """Return whether it is neither here nor at a node."""
        return self.fd < 0 and not any(place.has(self.name) for place in list(self.places))

    def bring(self) -> None:
        """
        Wait until the content is here; for any thread but the engine's.

        Raises:
            RefError: If it cannot be had any more.
            PoolClosedError: If the pool is closed.
        """
        if self.fd >= 0:
            return
        ended: Future[str] = Future()
        self.post(lambda: self.fetch(ended.set_result))
        if why := ended.result():
            raise RefError(why, hint=AGAIN)

    def fetch(self, done: Callable[[str], None]) -> None:
        """
        Fetch the content from a node that has it; in the engine's loop.

        Args:
            done: Called once, with why it does not come, or nothing.
        """
        if self.fd >= 0:
            done("")
            return
        for place in self.places:
            if place.has(self.name):
                place.ask(self, done)
                return
        done(self.why_lost())

    def came(self, segment: Segment) -> None:
        """Take the content that arrived."""
        if self.fd < 0:
            self.fd, segment.fd = segment.fd, -1

    def why_lost(self) -> str:
        """Return where the content was, and that it is lost."""
        return f"The value of this Ref was kept by {self.origin.where}, which is lost or has it no more."


AGAIN = "Run the call again that put it; `ref.get()` in time keeps a copy here."
"""What to do about a value that is lost."""


def returned(where: Any, sizes: tuple[int, ...]) -> Any:
    """
    Make a Ref of what a result names.

    Raises:
        RefError: If it is opened where no pool is.
        ValueError: If it makes no sense.
    """
    if not isinstance(where, Absent):
        raise RefError("A Ref of a node's is opened where its node is not connected.", hint=AGAIN)
    plain = type(sizes) is tuple and all(type(size) is int and size >= 0 for size in sizes)
    if not plain or not sizes or sum(map(aligned, sizes)) > where.size:
        raise ValueError("a Ref of other sizes than its buffer")
    return where.home.add(where, sizes)
