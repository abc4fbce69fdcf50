"""Which pool a word means."""

from __future__ import annotations

import pytest

from skyward.errors import SkywardError
from skyward.plan.logs.stored_pool import StoredPool, chosen, stored_pool

POOLS = [
    StoredPool(id="3fa9c1d2", name="train", began=3.0),
    StoredPool(id="77c0ffee", name="sweep-7", began=2.0),
    StoredPool(id="77d1beef", name="train", began=1.0),
]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        (None, "3fa9c1d2"),
        ("train", "3fa9c1d2"),
        ("77d1beef", "77d1beef"),
        ("3f", "3fa9c1d2"),
        ("sw", "77c0ffee"),
        ("tr", "3fa9c1d2"),
        ("77c", "77c0ffee"),
    ],
)
def test_a_pool_is_chosen(word: str | None, found: str) -> None:
    """By name, id or a beginning; the newest of a name, and of all."""
    assert found == chosen(POOLS, word).id


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("trian", "No pool 'trian' has a stored log here. Did you mean 'train'?"),
        ("zzz", "Type: sky logs --list"),
        ("77", r"'77' may be any of 2 pools: sweep-7 \(77c0ffee\), train \(77d1beef\)"),
        ("", "No pool ''"),
    ],
)
def test_a_word_for_none_or_several_is_refused(word: str, message: str) -> None:
    """With the nearest name, or those that may be meant."""
    with pytest.raises(SkywardError, match=message):
        chosen(POOLS, word)


def test_without_any_log_it_is_said() -> None:
    """Whatever is asked for."""
    with pytest.raises(SkywardError, match="No pool has a stored log here"):
        chosen([], None)


FACTS = {"id": "3fa9", "name": "train", "began": 5.0, "run": 2}


@pytest.mark.parametrize(
    ("ends", "lives", "state", "receipts"),
    [
        ([], True, "open", 0),
        ([], False, "died", 0),
        ([{"run": 1, "how": "detached", "ended": 6.0, "receipt": {"total_cost": 1.0}}], True, "open", 1),
        ([{"run": 1, "how": "detached", "ended": 6.0, "receipt": {"total_cost": 1.0}}], False, "died", 1),
        ([{"run": 2, "how": "ended", "ended": 6.0, "receipt": None}], False, "ended", 0),
    ],
)
def test_a_pool_is_what_its_last_run_says(
    ends: list[dict[str, object]], lives: bool, state: str, receipts: int
) -> None:
    """One that was attached has several; a receipt counts whichever it is of."""
    pool = stored_pool(FACTS, ends, lives=lives)
    assert (state, receipts) == (pool.state, len(pool.receipts))


@pytest.mark.parametrize("facts", [{}, {**FACTS, "began": "then"}, {**FACTS, "run": None}])
def test_a_damaged_file_is_no_pool(facts: dict[str, object]) -> None:
    """It is a ValueError, whatever is wrong with it."""
    with pytest.raises(ValueError, match=r"."):
        stored_pool(facts, [], lives=False)
