"""An account that is used by one key, and the hooks that are the same for each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from attrs import field, frozen

from skyward.errors import NoCredentialsError
from skyward.hookspecs import Cluster, Instance, Tags
from skyward.providers.account_hooks import AccountHooks
from skyward.providers.credentials import Credential
from skyward.providers.key_account import KeyAccount
from skyward.rest import Service

KEY = Credential(provider="shed", title="Shed", parameter="api_key", variables=("SHED_KEY",), hint="Ask.")
SERVICE = Service(provider="shed", title="Shed", base_url="https://shed.example/", url_variable="SHED_URL")


def test_the_key_and_the_address_are_looked_for_when_they_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user wrote counts most, then the environment."""
    account = KeyAccount(SERVICE, KEY, None)
    assert ("", "https://shed.example") == (account.known_key, account.url)
    with pytest.raises(NoCredentialsError, match="SHED_KEY"):
        account.identity()
    monkeypatch.setenv("SHED_KEY", "k")
    monkeypatch.setenv("SHED_URL", "http://127.0.0.1:1/")
    assert ("k", "http://127.0.0.1:1 k") == (account.known_key, account.identity())
    assert "http://127.0.0.1:1" == account.api.service.base_url
    given = KeyAccount(SERVICE, KEY, "mine", "http://127.0.0.1:2")
    assert "http://127.0.0.1:2 mine" == given.identity()


class Account(KeyAccount):
    """An account that records what is terminated."""

    def __init__(self) -> None:
        super().__init__(SERVICE, KEY, "hidden")
        self.terminated: list[str] = []

    async def instances(self, cluster: Cluster) -> Sequence[Instance]:
        """List none."""
        return []

    async def owned(self) -> Sequence[Instance]:
        """List one."""
        return [Instance(id="i-1", node=0, provider="shed", tags=Tags(pool_id="a1"))]

    async def terminate(self, ids: Sequence[str]) -> None:
        """Terminate at once."""
        self.terminated += ids


@frozen(kw_only=True)
class Shed(AccountHooks):
    """A provider of which nothing is its own."""

    _account: Account = field(factory=Account, init=False, eq=False, repr=False)


def test_a_provider_answers_five_hooks_out_of_its_account() -> None:
    """As core asks them."""
    shed = Shed()
    owned = asyncio.run(shed.skyward_owned())
    assert ["i-1"] == [each.id for each in owned]
    asyncio.run(shed.skyward_end(owned))
    asyncio.run(shed.skyward_terminate(ids=["i-2"]))
    assert ["i-1", "i-2"] == shed._account.terminated
    assert asyncio.run(shed.skyward_clock()) is None
