"""What an open pool has written down of it, for the case that its client dies."""

from __future__ import annotations

from typing import Protocol

__all__ = ["NoRecord", "PoolRecord"]


class PoolRecord(Protocol):
    """Keep a pool recorded; used in the engine's loop."""

    async def begin(self) -> None:
        """
        Write down what there is, and go on with that.

        Raises:
            ConfigError: If another client has the pool.
        """

    async def pause(self) -> None:
        """Write nothing more: the pool is about to be left, and what is written then holds."""

    def go_on(self) -> None:
        """Continue after `pause`, because the pool was not left."""

    async def close(self, *, left: bool) -> None:
        """
        Remove what was written, and release the pool.

        Args:
            left: Whether another client is to go on with it, by a record of its own.
        """


class NoRecord:
    """Record nothing."""

    async def begin(self) -> None:
        """Do nothing."""

    async def pause(self) -> None:
        """Do nothing."""

    def go_on(self) -> None:
        """Do nothing."""

    async def close(self, *, left: bool) -> None:
        """Do nothing."""
