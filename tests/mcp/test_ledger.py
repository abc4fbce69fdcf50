"""A budget is divided among pools before anything is rented."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies

from skyward.errors import BudgetExceededError, ConfigError
from skyward_mcp.ledger import Ledger


def test_what_is_granted_counts_until_the_pool_is_over() -> None:
    """Then what it has cost counts instead, also where that is more."""
    ledger = Ledger(budget=10.0).grant("a", 4.0).grant("b", 5.0)
    assert 1.0 == ledger.left
    assert 4.0 == ledger.settle("a", 1.0).left
    assert -1.0 == ledger.settle("a", 6.0).left


def test_more_than_is_left_is_refused() -> None:
    """The error says what is left, what was spent, and which pools have the rest."""
    ledger = Ledger(budget=10.0).grant("train-1", 4.0).grant("old", 1.0).settle("old", 0.5)
    with pytest.raises(BudgetExceededError) as caught:
        ledger.asked(6.0)
    assert (
        "$6.00 cannot be granted: of this server's budget of $10.00, $5.50 is left. $0.50 was spent, and $4.00 is "
        "granted to train-1. Ask for a smaller budget, or end a pool"
    ) in str(caught.value)
    assert (10.0, 6.0) == (caught.value.budget, caught.value.cost)


def test_all_that_is_left_is_granted_where_nothing_is_said() -> None:
    """Where nothing is left, not even that."""
    ledger = Ledger(budget=10.0).grant("a", 4.0)
    assert 6.0 == ledger.asked(None)
    with pytest.raises(BudgetExceededError, match=r"\$0\.00 is left"):
        ledger.grant("b", 6.0).asked(None)


@pytest.mark.parametrize("amount", [0.0, -1.0, math.inf, math.nan])
def test_what_is_no_amount_is_refused(amount: float) -> None:
    """Also what compares with nothing, or buys everything."""
    with pytest.raises(ConfigError, match="budget must be more than 0 USD"):
        Ledger(budget=10.0).asked(amount)


@given(strategies.lists(strategies.floats(0.01, 30.0)), strategies.floats(0.01, 50.0))
def test_no_sequence_of_grants_exceeds_the_budget(amounts: list[float], budget: float) -> None:
    """Whatever is asked for, and however much of it pools that stay within their grants have used."""
    ledger, refused = Ledger(budget=budget), 0
    for number, amount in enumerate(amounts):
        try:
            ledger = ledger.grant(str(number), ledger.asked(amount))
        except BudgetExceededError:
            refused += 1
        if number % 3 == 0 and str(number) in ledger.granted:
            ledger = ledger.settle(str(number), amount / 2)
    assert math.fsum([*ledger.granted.values(), *ledger.spent.values()]) <= budget * (1 + 1e-9)
    assert len(ledger.granted) + len(ledger.spent) + refused == len(amounts)
