"""A login whose token expires: one token for an account, whichever of this process's pools asks for it."""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Awaitable, Callable
from weakref import WeakKeyDictionary, WeakValueDictionary

from attrs import define, field, frozen

from skyward.errors import SkywardError
from skyward.rest.api import Login
from skyward.rest.reply import reply_of

__all__ = ["EARLY", "Token", "TokenLogin", "used_for"]

EARLY = 30.0
"""Seconds before its end at which a token is renewed."""


@frozen(kw_only=True)
class Token:
    """
    Hold a token.

    Args:
        login: What makes a call ours with it.
        lifetime: Seconds that it is good for, from when it was asked for.
        refresh: What the next one can be had for; None where only the credentials do.
    """

    login: Login
    lifetime: float
    refresh: str | None = field(default=None, repr=False)


def used_for(lifetime: float) -> float:
    """
    Return how long a token is used before it is renewed, in seconds.

    Args:
        lifetime: How long it is good for.

    >>> used_for(3600.0), used_for(40.0)
    (3570.0, 20.0)
    """
    return max(lifetime - EARLY, lifetime / 2)


_shared: WeakValueDictionary[str, TokenLogin] = WeakValueDictionary()
_sharing = threading.Lock()


@define(eq=False, slots=True, weakref_slot=True)
class TokenLogin:
    """
    Keep the one token of an account, and renew it before it expires or when it was refused.

    Its `login` is what `Api` takes as such.

    Args:
        ask: Asks for a token: by what the last one can be refreshed with, or by the credentials where that is None.
    """

    _ask: Callable[[str | None], Awaitable[Token]] = field(repr=False)
    _token: Token | None = field(default=None, init=False, repr=False)
    _renew_at: float = field(default=0.0, init=False, repr=False)
    _asking: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = field(
        factory=WeakKeyDictionary, init=False, repr=False
    )

    @classmethod
    def of(cls, identity: str, ask: Callable[[str | None], Awaitable[Token]]) -> TokenLogin:
        """
        Return the one of an account, for all of its callers.

        Args:
            identity: Tells accounts apart, such as its address and credentials; only a digest of it is kept.
            ask: As for the class.
        """
        key = hashlib.sha256(identity.encode()).hexdigest()
        with _sharing:
            found = _shared.get(key)
            if found is None:
                found = _shared[key] = cls(ask)
            return found

    @property
    def secrets(self) -> tuple[str, ...]:
        """Return what must be read in no error and no log."""
        return () if self._token is None else self._token.login.secrets

    async def login(self, stale: Login | None) -> Login:
        """
        Return what makes a call ours; a token that is about to expire is renewed first.

        Args:
            stale: What was refused; None if nothing was.

        Raises:
            CredentialsError: If the credentials are refused.
        """
        async with self._asking.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            token = self._token
            refused = token is not None and token.login == stale
            if token is None or refused or time.monotonic() >= self._renew_at:
                began = time.monotonic()
                token = self._token = await self._renewed(None if refused else token)
                self._renew_at = began + used_for(token.lifetime)
            return token.login

    async def _renewed(self, old: Token | None) -> Token:
        if old is not None and old.refresh is not None:
            try:
                return await self._ask(old.refresh)
            except SkywardError as error:
                reply = reply_of(error)
                if reply is None or reply.status not in (400, 401):
                    raise
        return await self._ask(None)
