"""Descriptors on their way through the agent."""

from __future__ import annotations

import os

from skyward.link.descriptors import own


class HeldFds:
    """
    Close descriptors when the frame they travel with was written.

    Args:
        fds: The descriptors; taken over.
    """

    __slots__ = ("_fds",)

    def __init__(self, fds: tuple[int, ...]) -> None:
        own(fds)
        self._fds = fds

    def hand_over(self) -> tuple[int, ...]:
        """Return the descriptors to the caller, which closes them from now on."""
        fds, self._fds = self._fds, ()
        return fds

    def __del__(self) -> None:
        close_all(self._fds)


def close_all(fds: tuple[int, ...]) -> None:
    """Close descriptors."""
    own(fds)
    for fd in fds:
        os.close(fd)
