"""What an open pool hears from one of its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.link.emitted import Emitted
    from skyward.link.frames import Frame
    from skyward.link.messages import LogLine


class NodeListener:
    """
    Hear a node; this one lets everything go by, as before the node is used.

    All of it is called in the engine's loop.
    """

    def call_frame(self, shell: NodeShell, frame: Frame, fds: tuple[int, ...]) -> None:
        """Take a frame about a call: its result, an item of a stream, credit."""

    def call_announced(self, shell: NodeShell, frame: Frame) -> bool:
        """Return whether the buffers of a call's frame are wanted, which come before it."""
        return False

    def emitting(self, shell: NodeShell, frame: Frame) -> bool:
        """Return whether an event is of a call that runs on the node."""
        return False

    def behind(self, shell: NodeShell) -> bool:
        """Return whether handlers are behind; `shell.go_on` is called when they are not any more."""
        return False

    def lines(self, shell: NodeShell, stream: int, lines: list[LogLine]) -> None:
        """Take what a worker wrote."""

    def emitted(self, shell: NodeShell, emitted: Emitted) -> None:
        """Take an event that a task emitted."""

    def measured(self, shell: NodeShell, measured: dict[str, Any]) -> None:
        """Take measurements."""

    def noticed(self, shell: NodeShell, notice: dict[str, Any]) -> None:
        """Take the notice that the machine will be reclaimed."""

    def asked(self, shell: NodeShell, question: bytes) -> None:
        """Answer who the members of the pool are."""

    def lost(self, shell: NodeShell, why: str) -> None:
        """Take note that the node is lost."""
