"""Machines are ended until they are gone."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence

import pytest

from skyward.errors import CredentialsError, ProvisionError, SkywardError
from skyward.rest import end_for_good


class Books:
    """Machines that need some orders before they end, and a list that may fail."""

    def __init__(self, **orders: int) -> None:
        self.needed = orders
        self.lists_fail = 0
        self.refusal: SkywardError | None = None
        self.orders: list[str] = []

    async def end(self, name: str) -> None:
        self.orders.append(name)
        self.needed[name] -= 1
        if self.needed[name] and self.refusal is not None:
            raise self.refusal

    async def left(self, ids: Sequence[str]) -> Collection[str]:
        if self.lists_fail:
            self.lists_fail -= 1
            raise ProvisionError("The list failed.")
        return {name for name in ids if self.needed[name] > 0}

    def run(self, *ids: str, within: float = 30.0) -> None:
        hint = "Type: rm {ids}"
        asyncio.run(end_for_good(ids, end=self.end, left=self.left, provider="p", hint=hint, within=within))


def test_nothing_to_end_asks_nobody() -> None:
    """No machine, no call."""
    books = Books()
    books.run()
    assert [] == books.orders


def test_each_is_ended_until_it_is_gone() -> None:
    """What is gone is not ended again; what refuses for a while is."""
    books = Books(a=1, b=3)
    books.refusal = ProvisionError("It is locked.")
    books.run("a", "b", "a")
    assert ["a", "b", "b", "b"] == books.orders


def test_a_list_that_fails_is_not_an_empty_one() -> None:
    """As long as it is unknown, all of them may be there."""
    books = Books(a=1)
    books.lists_fail = 2
    books.run("a")
    assert ["a", "a", "a"] == books.orders


@pytest.mark.parametrize(
    ("refusal", "within"), [(CredentialsError("The key is bad."), 30.0), (ProvisionError("It is locked."), 0.1)]
)
def test_what_may_still_be_billed_is_named(refusal: SkywardError, within: float) -> None:
    """The error has the ids, the reason and what to type; a key that was refused is not tried for long."""
    books = Books(a=99, b=1, c=99)
    books.refusal = refusal
    with pytest.raises(ProvisionError, match=r"a, c may still be running and billed: .*Type: rm a c") as caught:
        books.run("a", "b", "c", within=within)
    assert refusal is caught.value.__cause__
