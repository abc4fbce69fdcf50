"""
How many nodes a pool has, and how many it may have.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import suggesting, whole

__all__ = ["NodeSpec", "Nodes", "nodes"]

_ACCEPTED = "Write nodes=4, nodes=(2, 8) for 2 that may become 8, or nodes=sky.Nodes(desired=8, min=4, max=16)."


def _desired(value: int) -> int:
    """Return the number of nodes wanted, checked."""
    return whole(value, "desired", least=1)


def _min(value: int | None) -> int | None:
    """Return the number of nodes to start with, checked."""
    return None if value is None else whole(value, "min", least=1)


def _max(value: int | None) -> int | None:
    """Return the most nodes to grow to, checked."""
    return None if value is None else whole(value, "max", least=1)


@suggesting
@frozen
class Nodes:
    """
    Say how many nodes a pool wants, needs and may have.

    Args:
        desired: The number of nodes to rent, at least 1.
        min: How many of them have to be ready before work starts; all of them by default.
        max: The most that the pool may grow to when work piles up; None keeps its size fixed.

    Raises:
        ConfigError: If one is no whole number of at least 1, or not min <= desired <= max.

    >>> Nodes(8, min=4).floor
    4
    >>> Nodes(2, max=8).elastic
    True
    """

    USUAL: ClassVar[str] = _ACCEPTED

    desired: int = field(converter=_desired)
    min: int | None = field(default=None, kw_only=True, converter=_min)
    max: int | None = field(default=None, kw_only=True, converter=_max)

    def __attrs_post_init__(self) -> None:
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

        >>> Nodes(8, min=4).elastic, Nodes(8, max=16).elastic
        (False, True)
        """
        return self.max is not None and self.max > self.floor


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
