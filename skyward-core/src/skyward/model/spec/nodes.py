"""
How many nodes a pool has, and how many it may have.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from attrs import field, frozen

from skyward.errors import ConfigError, UsageError
from skyward.model.fields.setting import suggesting, whole

__all__ = ["NodeSpec", "Nodes", "nodes"]

_ACCEPTED = (
    "Write nodes=4, nodes=(2, 8) for 2 that may become 8, or nodes=sky.Nodes(desired=8, min=4, max=16). "
    "sky.Nodes(min=0, max=8) starts with the first call."
)


def _desired(value: int | None) -> int:
    """Return the number of nodes wanted, checked; 0 where it is left to `min`."""
    return 0 if value is None else whole(value, "desired", least=1)


def _min(value: int | None) -> int | None:
    """Return the number of nodes to start with, checked."""
    return None if value is None else whole(value, "min")


def _max(value: int | None) -> int | None:
    """Return the most nodes to grow to, checked."""
    return None if value is None else whole(value, "max", least=1)


@suggesting
@frozen
class Nodes:
    """
    Say how many nodes a pool wants, needs and may have.

    Args:
        desired: The number of nodes to rent, at least 1; as many as `min` where it is left out, but 1 with
            `min=0`, where a broadcast to a pool without nodes starts so many.
        min: How many of them have to be ready before work starts; all of them by default. With 0 the pool opens without
            a node, starts them with the first call, and drains to zero when it is idle.
        max: The most that the pool may grow to when work piles up; None keeps its size fixed.

    Raises:
        ConfigError: If one is no such number, or not min <= desired <= max.

    >>> Nodes(8, min=4).floor
    4
    >>> Nodes(2, max=8).elastic
    True
    >>> Nodes(min=0, max=8)
    Nodes(desired=1, min=0, max=8)
    """

    USUAL: ClassVar[str] = _ACCEPTED

    desired: int = field(default=None, converter=_desired)
    min: int | None = field(default=None, kw_only=True, converter=_min)
    max: int | None = field(default=None, kw_only=True, converter=_max)

    def __attrs_post_init__(self) -> None:
        if self.min is not None and self.max is not None and self.min > self.max:
            raise ConfigError(
                f"nodes: min must not be more than max, but min={self.min} and max={self.max}.",
                hint=f"Write sky.Nodes(min={self.max}, max={self.min}).",
            )
        if not self.desired:
            if self.min is None:
                raise UsageError(f"sky.Nodes({self._written}) lacks desired, or min.", hint=_ACCEPTED)
            object.__setattr__(self, "desired", max(1, self.min))
        if self.min is not None and self.min > self.desired:
            raise ConfigError(
                f"nodes: min must not be more than desired, but min={self.min} and desired={self.desired}.",
                hint=_ACCEPTED,
            )
        if self.max is not None and self.max < self.desired:
            raise ConfigError(
                f"nodes: max must not be less than desired, but desired={self.desired} and max={self.max}.",
                hint=_ACCEPTED,
            )

    @property
    def _written(self) -> str:
        return "" if self.max is None else f"max={self.max}"

    @property
    def initial(self) -> int:
        """
        Return how many nodes the pool opens with.

        >>> Nodes(4, min=2).initial, Nodes(4, min=0).initial
        (4, 0)
        """
        return self.desired if self.floor else 0

    @property
    def floor(self) -> int:
        """
        Return the fewest nodes the pool works with: it starts there and never shrinks below.

        >>> Nodes(4).floor, Nodes(4, min=2).floor
        (4, 2)
        """
        return self.desired if self.min is None else self.min

    @property
    def ceiling(self) -> int:
        """
        Return the most nodes the pool ever has.

        >>> Nodes(4).ceiling, Nodes(4, max=16).ceiling
        (4, 16)
        """
        return self.desired if self.max is None else self.max

    @property
    def elastic(self) -> bool:
        """
        Return whether the pool grows and shrinks with its work.

        >>> Nodes(8, min=4).elastic, Nodes(8, max=16).elastic, Nodes(8, min=0).elastic
        (False, True, True)
        """
        return self.min == 0 or (self.max is not None and self.max > self.floor)


NodeSpec: TypeAlias = int | tuple[int, int] | Nodes


def nodes(value: NodeSpec) -> Nodes:
    """
    Return what `nodes=` was given as a value.

    Args:
        value: A number of nodes, a pair of desired and max, or a `Nodes`.

    Raises:
        ConfigError: If it is none of these, or asks for the impossible.

    >>> nodes(4)
    Nodes(desired=4, min=None, max=None)
    >>> nodes((2, 8))
    Nodes(desired=2, min=None, max=8)
    """
    given: Any = value
    if isinstance(given, Nodes):
        return given
    # A pair written in TOML arrives as a list.
    if isinstance(given, (tuple, list)):
        return _pair(given)
    try:
        return Nodes(whole(given, "nodes", least=1))
    except ConfigError as error:
        raise ConfigError(error.message, hint=_ACCEPTED) from None


def _pair(given: tuple[Any, ...] | list[Any]) -> Nodes:
    """Return a pair of desired and max as a value."""
    if len(given) != 2:
        raise ConfigError(f"nodes must be a pair of desired and max, not {given!r}.", hint=_ACCEPTED)
    try:
        desired, most = (whole(number, "nodes", least=1) for number in given)
    except ConfigError as error:
        raise ConfigError(
            f"nodes must be a pair of whole numbers of at least 1, not {given!r}.", hint=_ACCEPTED
        ) from error
    if desired > most:
        raise ConfigError(
            f"nodes={given!r} has more desired nodes than it may have.", hint=f"Write nodes=({most}, {desired})."
        )
    return Nodes(desired, max=most)
