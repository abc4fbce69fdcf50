"""A place where a worker process stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Kind

if TYPE_CHECKING:
    from skyward.node.agent.child_process import ChildProcess

_FAILED_STARTS = 3


class WorkerLane:
    """
    A place where a worker process stands, one after the other.

    Args:
        index: Its number on this node.
        config: Command line, environment and facts of its workers.
    """

    def __init__(self, index: int, config: dict[str, Any]) -> None:
        self.index = index
        self.config = config
        self.process: ChildProcess | None = None
        self.failed_starts = 0

    def gives_up(self, *, announced: bool) -> bool:
        """
        Record that its process ended, and return whether there is to be no other.

        Args:
            announced: Whether the node was ready before.
        """
        process, self.process = self.process, None
        if process is None or process.ready:
            return False
        self.failed_starts += 1
        return self.failed_starts >= _FAILED_STARTS or not announced


def lane_of(lanes: Sequence[WorkerLane], frame: Frame) -> WorkerLane:
    """
    Return the lane that a frame is for.

    Args:
        lanes: The node's.
        frame: The frame.

    Raises:
        ProtocolError: If there is none.
    """
    if frame.lane >= len(lanes):
        raise ProtocolError(f"A {Kind(frame.kind).name} frame is for lane {frame.lane} of {len(lanes)}.")
    return lanes[frame.lane]
