"""What becomes of the machines of a pool that is left, other than that they are terminated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell

__all__ = ["Leaving"]


class Leaving(Protocol):
    """Leave machines as they are, or waiting; lives in the engine's loop."""

    wanted: bool

    @property
    def any(self) -> bool:
        """Return whether a machine is left."""

    @property
    def stays(self) -> bool:
        """Return whether a machine is left that no guardian may end, as one with calls."""

    async def begin(self) -> None:
        """Decide what is left, and for how long, before any node ends."""

    async def keep(self, shell: NodeShell, patience: float) -> bool:
        """
        Leave a node's machine.

        Args:
            shell: The node.
            patience: Seconds that it has to leave in good order.

        Returns:
            Whether it is left; if not, it is to be terminated.
        """

    async def write(self, terminate: Callable[[NodeShell], Awaitable[str]]) -> None:
        """
        Write down how the machines that are left are reached.

        Args:
            terminate: Ends a node and its machine, and returns what could not be ended.
        """

    async def give_up(self) -> None:
        """Withdraw the machines that are left: something else ends them."""
