"""
Whether machines are rented on the spot market or on demand.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, TypeAlias

from attrs import field, frozen

from skyward.errors import ConfigError

__all__ = ["Allocation", "AllocationLike", "AllocationStrategy", "allocation"]

AllocationStrategy = Literal["spot-if-available", "spot", "always-spot", "on-demand", "cheapest"]

_STRATEGIES = ("spot-if-available", "spot", "on-demand", "cheapest")
_ALIASES = {"always-spot": "spot"}
_ACCEPTED = (
    'Accepted: "spot-if-available", "spot" (or "always-spot"), "on-demand", "cheapest", '
    "or the least share of spot from 0 to 1."
)


def _strategy(given: object, parameter: str = "strategy") -> str:
    """Return the one name of a strategy."""
    name = given.strip().lower().replace("_", "-") if isinstance(given, str) else ""
    name = _ALIASES.get(name, name)
    if name in _STRATEGIES or (name == "percent" and parameter == "strategy"):
        return name
    from difflib import get_close_matches

    near = get_close_matches(name, (*_STRATEGIES, *_ALIASES), n=1)
    meant = f"Did you mean {near[0]!r}? " if near else ""
    raise ConfigError(f"{parameter}={given!r} is no way to rent machines.", hint=meant + _ACCEPTED)


def _share(given: object, parameter: str = "spot") -> float:
    """Return a share of the nodes."""
    # NaN is not within any bounds, so that it is refused by the comparison.
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 <= given <= 1:
        raise ConfigError(f"{parameter}={given!r} is no way to rent machines.", hint=_ACCEPTED)
    return float(given)


def _optional_share(given: object) -> float | None:
    """Return a share of the nodes; None stays None."""
    return None if given is None else _share(given)


class _Named:
    """Give an allocation that takes no arguments, whether it is called or not."""

    def __init__(self, strategy: str) -> None:
        self._strategy = strategy

    def __get__(self, instance: object, owner: type[Allocation]) -> Allocation:
        return owner(self._strategy)


@frozen
class Allocation:
    """
    Say how machines are rented.

    The four strategies without arguments may be called or not: `Allocation.OnDemand` is `Allocation.OnDemand()`.

    Args:
        strategy: `"spot-if-available"`, `"spot"` (or `"always-spot"`), `"on-demand"`, `"cheapest"` or `"percent"`.
        spot: With `"percent"`, the least share of the nodes that is spot, from 0 to 1.

    Raises:
        ConfigError: If there is no such strategy, or no such share.

    >>> Allocation.Percent(spot=0.8).least_spot(4)
    4
    >>> Allocation.AlwaysSpot() == Allocation("spot")
    True
    """

    strategy: str = field(default="spot-if-available", converter=_strategy)
    spot: float | None = field(default=None, converter=_optional_share)

    SpotIfAvailable: ClassVar[_Named] = _Named("spot-if-available")
    AlwaysSpot: ClassVar[_Named] = _Named("spot")
    OnDemand: ClassVar[_Named] = _Named("on-demand")
    Cheapest: ClassVar[_Named] = _Named("cheapest")

    def __attrs_post_init__(self) -> None:
        if (self.strategy == "percent") is (self.spot is None):
            raise ConfigError('spot= goes with strategy "percent" and with no other.', hint="Write Percent(spot=0.8).")

    @staticmethod
    def Percent(*, spot: float) -> Allocation:
        """
        Rent at least a share of the nodes on the spot market.

        Args:
            spot: The share, from 0 to 1.

        Raises:
            ConfigError: If the share is no number from 0 to 1.

        >>> Allocation.Percent(spot=0.5).spot
        0.5
        """
        return Allocation("percent", spot)

    def __call__(self) -> Allocation:
        return self

    def __str__(self) -> str:
        return self.strategy if self.spot is None else f"{self.spot:g}"

    @property
    def allows_spot(self) -> bool:
        """Return whether a node may be spot."""
        return self.strategy != "on-demand"

    @property
    def allows_on_demand(self) -> bool:
        """Return whether a node may be on demand."""
        return self.strategy != "spot" and self.spot != 1

    def least_spot(self, nodes: int) -> int:
        """
        Return how many of so many nodes have to be spot.

        Args:
            nodes: How many nodes there are.

        >>> Allocation.Percent(spot=0.1).least_spot(30)
        3
        """
        if self.strategy == "spot":
            return nodes
        # 0.1 * 30 is a little more than 3, and no fourth node is meant.
        return 0 if self.spot is None else math.ceil(round(self.spot * nodes, 9))


AllocationLike: TypeAlias = AllocationStrategy | float | Allocation


def allocation(value: object, parameter: str = "allocation") -> Allocation:
    """
    Return the allocation that a user writes.

    Args:
        value: An `Allocation`, the name of a strategy, or the least share of spot from 0 to 1.
        parameter: Name of the parameter it was given for, for the error.

    Raises:
        ConfigError: If the value is none of these.

    >>> allocation("always-spot").strategy, allocation(0.8).spot
    ('spot', 0.8)
    """
    if isinstance(value, Allocation):
        return value
    if isinstance(value, str):
        return Allocation(_strategy(value, parameter))
    return Allocation("percent", _share(value, parameter))
