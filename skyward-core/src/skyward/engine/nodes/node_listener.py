"""What an open pool receives from one of its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from skyward.link.emitted import Emitted
    from skyward.link.frames import Frame
    from skyward.link.messages import LogLine


S = TypeVar("S")


class NodeListener(Generic[S]):
    """
    Receive what a node sends; this one ignores everything, as before the node is used.

    All of it is called in the engine's loop, with the node's shell.
    """

    def call_frame(self, shell: S, frame: Frame, fds: tuple[int, ...]) -> None:
        """Take a frame about a call: its result, an item of a stream, credit."""

    def call_announced(self, shell: S, frame: Frame) -> bool:
        """Return whether the buffers of a call's frame are wanted, which come before it."""
        return False

    def emitting(self, shell: S, frame: Frame) -> bool:
        """Return whether an event is of a call that runs on the node."""
        return False

    def behind(self, shell: S) -> bool:
        """Return whether handlers are behind; `shell.go_on` is called when they are not any more."""
        return False

    def lines(self, shell: S, stream: int, lines: list[LogLine]) -> None:
        """Take what a worker wrote."""

    def emitted(self, shell: S, emitted: Emitted) -> None:
        """Take an event that a task emitted."""

    def measured(self, shell: S, measured: dict[str, Any]) -> None:
        """Take measurements."""

    def noticed(self, shell: S, notice: dict[str, Any]) -> None:
        """Take the notice that the machine will be reclaimed."""

    def asked(self, shell: S, question: bytes) -> None:
        """Answer with the members of the pool."""

    def keeps(self, shell: S, frame: Frame, fds: tuple[int, ...]) -> None:
        """Take a file that a task has this client keep, or a question for one."""

    def keeps_announced(self, shell: S, frame: Frame) -> bool:
        """Return whether the bytes of such a file are wanted, which come before its frame."""
        return False

    def store_asked(self, shell: S, body: bytes) -> None:
        """Take what a node asks or says about the store of the collections."""

    def came_back(self, shell: S, calls: dict[str, Any]) -> None:
        """Take what a node says of the calls that it has from an earlier client."""

    def lost(self, shell: S, why: str) -> None:
        """Record that the node is lost."""
