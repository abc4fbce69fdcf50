"""What a server's pools may cost together: a budget that is divided before anything is rented."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from attrs import evolve, field, frozen

from skyward.errors import BudgetExceededError, ConfigError
from skyward.model.instances.cost_report import money

__all__ = ["LEAST", "Ledger"]

LEAST = 1e-6
"""USD that a pool is granted at least: less buys no second of anything."""


def _frozen(value: Mapping[str, float]) -> Mapping[str, float]:
    """Return a copy that cannot be changed."""
    return MappingProxyType(dict(value))


@frozen(kw_only=True)
class Ledger:
    """
    Divide a budget among pools.

    What a pool is granted counts as spent until the pool is over, and what it has cost from then on.

    Args:
        budget: What all pools together may cost, in USD.
        granted: What each pool that is not over may cost at most, by its name.
        spent: What each pool that is over has cost, by its name.

    >>> ledger = Ledger(budget=20.0).grant("train", 5.0)
    >>> ledger.left, ledger.settle("train", 1.5).left
    (15.0, 18.5)
    """

    budget: float
    granted: Mapping[str, float] = field(factory=dict, converter=_frozen)
    spent: Mapping[str, float] = field(factory=dict, converter=_frozen)

    @property
    def left(self) -> float:
        """Return what may still be granted, in USD."""
        return self.budget - math.fsum(self.granted.values()) - math.fsum(self.spent.values())

    def asked(self, amount: float | None) -> float:
        """
        Return what a pool would be granted.

        Args:
            amount: What it asks for, in USD; None asks for all that is left.

        Raises:
            ConfigError: If that is no amount of money.
            BudgetExceededError: If less is left.
        """
        if amount is not None and not (math.isfinite(amount) and amount > 0):
            raise ConfigError(f"budget must be more than 0 USD, not {amount:g}.")
        wanted = max(self.left, LEAST) if amount is None else amount
        if wanted > self.left:
            raise BudgetExceededError(
                f"{money(wanted)} cannot be granted: of this server's budget of {money(self.budget)}, "
                f"{money(max(0.0, self.left))} is left. {money(math.fsum(self.spent.values()))} was spent, and "
                f"{money(math.fsum(self.granted.values()))} is granted to {_named(self.granted)}.",
                budget=self.budget,
                cost=wanted,
                hint="Ask for a smaller budget, or end a pool; only the user can start the server with a larger one.",
            )
        return wanted

    def grant(self, pool: str, amount: float) -> Ledger:
        """
        Return the ledger with a grant to a pool.

        Args:
            pool: Its name.
            amount: In USD; `asked` says how much it may be.
        """
        return evolve(self, granted={**self.granted, pool: amount})

    def settle(self, pool: str, cost: float) -> Ledger:
        """
        Return the ledger with a pool that is over.

        Args:
            pool: Its name.
            cost: What it has cost, in USD.
        """
        rest = {name: amount for name, amount in self.granted.items() if name != pool}
        return evolve(self, granted=rest, spent={**self.spent, pool: cost})


def _named(granted: Mapping[str, float]) -> str:
    return ", ".join(sorted(granted)) or "no pool"
