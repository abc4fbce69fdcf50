"""What a pool sees of a function whose call it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

__all__ = ["Called"]

T_co = TypeVar("T_co", covariant=True)


class Called(Protocol[T_co]):
    """What a pending call calls: a `sky.Function`, as pools look at it."""

    @property
    def local(self) -> Callable[..., T_co]:
        """Return the plain function."""

    @property
    def shape(self) -> Callable[..., Any]:
        """Return what is called like it, for its parameters."""

    @property
    def name(self) -> str:
        """Name it as the user does."""

    @property
    def needs(self) -> str:
        """Name what a worker has to have kept from calls before; empty if nothing."""

    @property
    def streams(self) -> bool:
        """Return whether it is a generator function, whose items are sent one by one."""

    @property
    def stream_parameters(self) -> tuple[str, ...]:
        """List the parameters annotated as `Iterator[...]`, whose items are streamed to the node."""
