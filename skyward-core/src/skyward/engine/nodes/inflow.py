"""Flow control of a node's lines and events: held back while handlers are behind, bounded by a window."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from skyward.link.frames import Frame
from skyward.link.windows import OUTPUT_WINDOW, OutputWindow
from skyward.node.agent.fds import HeldFds

_LEAVE = OUTPUT_WINDOW // 16


class Inflow:
    """
    Pass frames on as fast as handlers take them; as bytes they wait, because as events they are many times as large.

    Args:
        pass_on: Takes each frame and its descriptors.
        give_leave: Lets the node send so many bytes more.
        behind: Returns whether handlers are behind; `go_on` is called when they are not any more.
    """

    def __init__(
        self,
        pass_on: Callable[[Frame, tuple[int, ...]], None],
        give_leave: Callable[[int], None],
        behind: Callable[[], bool],
    ) -> None:
        self._pass_on = pass_on
        self._give_leave = give_leave
        self._behind = behind
        self._window = OutputWindow()
        self._announced: dict[int, int] = {}
        self._waiting: deque[tuple[Frame, tuple[int, ...], int, HeldFds | None]] = deque()
        self._taken = 0

    def announced(self, frame: Frame) -> None:
        """
        Record a frame whose buffers are about to come.

        Raises:
            ProtocolError: If the node had no leave to send it.
        """
        self._announced[id(frame)] = self._window.arrived(frame)

    def take(self, frame: Frame, fds: tuple[int, ...]) -> None:
        """
        Take a frame and its descriptors, which are its own now.

        Raises:
            ProtocolError: If the node had no leave to send it.
        """
        size = self._announced.pop(id(frame), None)
        if size is None:
            size = self._window.arrived(frame)
        self._waiting.append((frame, fds, size, HeldFds(fds) if fds else None))
        self.go_on()

    def go_on(self) -> None:
        """Pass on what waits, until handlers are behind."""
        while self._waiting and not self._behind():
            self._next()
        if self._taken >= _LEAVE:
            taken, self._taken = self._taken, 0
            self._give_leave(taken)

    def close(self) -> None:
        """Pass on what has arrived, which is bounded: nothing more comes, and nothing is waited for any more."""
        while self._waiting:
            self._next()

    def _next(self) -> None:
        frame, fds, size, held = self._waiting.popleft()
        if held is not None:
            fds = held.hand_over()
        self._window.waiting -= size
        self._taken += size
        self._pass_on(frame, fds)
