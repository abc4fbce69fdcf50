"""One token for an account, renewed before it expires."""

from __future__ import annotations

import asyncio

import pytest

from skyward.errors import CredentialsError
from skyward.rest import Login, Reply, Token, TokenLogin


class Issuer:
    """Issue tokens, and count them."""

    def __init__(self, lifetime: float = 3600.0) -> None:
        self.lifetime = lifetime
        self.asked: list[str | None] = []
        self.refusal: int | None = None

    async def ask(self, refresh: str | None) -> Token:
        """Issue one."""
        self.asked.append(refresh)
        await asyncio.sleep(0)
        if refresh is not None and self.refusal is not None:
            error = CredentialsError("The refresh token is refused.")
            error.reply = Reply(method="POST", path="/token", status=self.refusal)  # type: ignore[attr-defined]
            raise error
        name = f"token-{len(self.asked)}"
        return Token(login=Login.bearer(name), lifetime=self.lifetime, refresh=f"refresh-{len(self.asked)}")


def test_all_who_ask_at_once_share_one_token() -> None:
    """So do those of another value of the same account."""
    issuer = Issuer()

    async def scenario() -> None:
        first, second = TokenLogin.of("one account", issuer.ask), TokenLogin.of("one account", issuer.ask)
        found = await asyncio.gather(*(each.login(None) for each in (first, second) * 5))
        assert [Login.bearer("token-1")] * 10 == found
        assert ("token-1",) == second.secrets

    asyncio.run(scenario())
    assert [None] == issuer.asked


def test_a_token_that_was_refused_is_had_anew_by_the_credentials() -> None:
    """Once, however many calls were refused with it."""
    issuer = Issuer()

    async def scenario() -> None:
        tokens = TokenLogin(issuer.ask)
        stale = await tokens.login(None)
        found = await asyncio.gather(*(tokens.login(stale) for _ in range(3)))
        assert [Login.bearer("token-2")] * 3 == found

    asyncio.run(scenario())
    assert [None, None] == issuer.asked


def test_a_token_that_is_about_to_expire_is_refreshed() -> None:
    """A refresh token that is refused is one more reason for the credentials."""
    issuer = Issuer(lifetime=0.0)

    async def scenario() -> None:
        tokens = TokenLogin(issuer.ask)
        await tokens.login(None)
        await tokens.login(None)
        issuer.refusal = 400
        await tokens.login(None)

    asyncio.run(scenario())
    assert [None, "refresh-1", "refresh-2", None] == issuer.asked


def test_what_is_wrong_otherwise_is_an_error() -> None:
    """The other side may be out of order."""
    issuer = Issuer(lifetime=0.0)

    async def scenario() -> None:
        tokens = TokenLogin(issuer.ask)
        await tokens.login(None)
        issuer.refusal = 503
        with pytest.raises(CredentialsError, match="refresh token is refused"):
            await tokens.login(None)

    asyncio.run(scenario())
