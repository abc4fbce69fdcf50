"""What a pool registers in an account."""

from __future__ import annotations

import asyncio

import pytest

from skyward.errors import ProvisionError, SkywardError
from skyward.providers.registration import TRIES, Registered, registered
from skyward.rest import Reply


def refusal(status: int) -> SkywardError:
    """Return the error of a call that was answered with a status; 0 for none."""
    error = ProvisionError("Not so.")
    error.reply = Reply(method="POST", path="/keys", status=status)  # type: ignore[attr-defined]
    return error


class Account:
    """An account in which a key is registered, and whose answers may be lost."""

    def __init__(self, *, there: bool = False, answers: tuple[int, ...] = (), makes: bool = True) -> None:
        self.there = there
        self.answers = [*answers]
        self.makes = makes
        self.calls: list[str] = []

    async def create(self) -> str:
        """Register it."""
        self.calls.append("create")
        status = self.answers.pop(0) if self.answers else 201
        if status == 201 or (self.makes and not status):
            self.there = True
        if status != 201:
            raise refusal(status)
        return "key-1"

    async def find(self) -> Registered | None:
        """Look for it."""
        self.calls.append("find")
        return Registered(id="key-1", own=False) if self.there else None


def run(account: Account, *, unique: bool) -> Registered:
    return asyncio.run(registered(account.create, account.find, unique=unique))


def test_what_is_not_there_is_registered() -> None:
    """A look comes first only where the cloud would take it twice."""
    for unique, calls in ((True, ["create"]), (False, ["find", "create"])):
        account = Account()
        assert Registered(id="key-1", own=True) == run(account, unique=unique)
        assert calls == account.calls


def test_what_is_there_is_used() -> None:
    """It is found before, or after the refusal."""
    account = Account(there=True)
    assert not run(account, unique=False).own
    assert ["find"] == account.calls
    account = Account(there=True, answers=(422,))
    assert not run(account, unique=True).own
    assert ["create", "find"] == account.calls


@pytest.mark.parametrize("unique", [True, False])
def test_after_a_lost_answer_it_is_looked_for(unique: bool) -> None:
    """It may have been registered; where it was not, it is registered again."""
    account = Account(answers=(0,))
    assert "key-1" == run(account, unique=unique).id
    assert 1 == account.calls.count("create")
    account = Account(answers=(0,), makes=False)
    assert "key-1" == run(account, unique=unique).id
    assert 2 == account.calls.count("create")


@pytest.mark.parametrize(("status", "tries"), [(503, TRIES), (400, 1)])
def test_a_refusal_is_an_error(status: int, tries: int) -> None:
    """At once, or when no answer came of several calls."""
    account = Account(answers=(status,) * 9, makes=False)
    with pytest.raises(ProvisionError, match="Not so"):
        run(account, unique=False)
    assert tries == account.calls.count("create")
