"""What the nodes of an open pool say, passed on to the part of the pool that it concerns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skyward.engine.nodes.node_listener import NodeListener
from skyward.link.frames import Kind
from skyward.link.messages import CALL
from skyward.node.agent.fds import close_all

if TYPE_CHECKING:
    from skyward.engine.calls.dispatch import Dispatch
    from skyward.engine.calls.inherited_calls import InheritedCalls
    from skyward.engine.events.reporting import Reporting
    from skyward.engine.nodes.membership import Membership
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.engine.pool.kept_files import KeptFiles
    from skyward.link.emitted import Emitted
    from skyward.link.frames import Frame
    from skyward.link.messages import LogLine


class NodeReports(NodeListener["NodeShell"]):
    """
    Pass on what nodes say; lives in the engine's loop.

    Args:
        dispatch: Takes what concerns calls.
        inherited: Takes what concerns calls of an earlier client.
        reporting: Takes what users receive: lines, events, measurements.
        membership: Answers with the members.
        kept: Keeps files of tasks.
        noticed: Called when a machine will be reclaimed.
        lost: Called when a node is lost.
        store: Takes what a node asks or says about the store of the collections.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        inherited: InheritedCalls,
        reporting: Reporting,
        membership: Membership,
        kept: KeptFiles,
        noticed: Callable[[NodeShell, dict[str, Any]], None],
        lost: Callable[[NodeShell, str], None],
        store: Callable[[NodeShell, bytes], None],
    ) -> None:
        self._dispatch = dispatch
        self._reporting = reporting
        self._membership = membership
        self._kept = kept
        self._noticed = noticed
        self._lost = lost
        self._store = store
        self._inherited = inherited

    def call_frame(self, shell: NodeShell, frame: Frame, fds: tuple[int, ...]) -> None:
        """Take a frame about a call."""
        if not self._inherited.takes(shell, frame, fds):
            self._dispatch.on_frame(shell.seat, frame, fds)

    def call_announced(self, shell: NodeShell, frame: Frame) -> bool:
        """Return whether the buffers of a call's frame are wanted."""
        wanted = None if frame.kind == Kind.BLOB else self._inherited.announced(shell.index, frame)
        return self._dispatch.on_announced(shell.seat, frame) if wanted is None else wanted

    def emitting(self, shell: NodeShell, frame: Frame) -> bool:
        """Return whether an event is of a call that runs on the node."""
        return self._dispatch.on_node(shell.seat, *CALL.unpack_from(frame.body)) is not None

    def behind(self, shell: NodeShell) -> bool:
        """Return whether handlers are behind."""
        return self._reporting.emitted.behind(shell)

    def lines(self, shell: NodeShell, stream: int, lines: list[LogLine]) -> None:
        """Take what a worker wrote."""
        self._reporting.lines(shell, stream, lines)

    def emitted(self, shell: NodeShell, emitted: Emitted) -> None:
        """Take an event that a task emitted."""
        self._reporting.emitted.take(shell, emitted)

    def measured(self, shell: NodeShell, measured: dict[str, Any]) -> None:
        """Take measurements."""
        self._reporting.measured(shell, measured)

    def noticed(self, shell: NodeShell, notice: dict[str, Any]) -> None:
        """Take the notice that the machine will be reclaimed."""
        self._noticed(shell, notice)

    def asked(self, shell: NodeShell, question: bytes) -> None:
        """Answer with the members of the pool."""
        self._membership.answer(shell, question)

    def keeps(self, shell: NodeShell, frame: Frame, fds: tuple[int, ...]) -> None:
        """Take a file that a task has this client keep, or a question for one."""
        member = self._dispatch.members.get(shell.seat)
        if member is None:
            close_all(fds)
        else:
            self._kept.take(shell, frame, fds, lanes=len(member.lanes))

    def keeps_announced(self, shell: NodeShell, frame: Frame) -> bool:
        """Return whether the bytes of such a file are wanted."""
        return self._kept.announced(frame)

    def store_asked(self, shell: NodeShell, body: bytes) -> None:
        """Take what a node asks or says about the store of the collections."""
        self._store(shell, body)

    def came_back(self, shell: NodeShell, calls: dict[str, Any]) -> None:
        """Take what a node says of the calls that it has from an earlier client."""
        self._inherited.came_back(shell, calls)

    def lost(self, shell: NodeShell, why: str) -> None:
        """Record that the node is lost."""
        self._kept.lost(shell)
        self._lost(shell, why)
