"""Keys of an object store: given as text, or by functions and coroutines that are asked again when keys expire."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar, runtime_checkable

from attrs import field, frozen

from skyward.errors import ConfigError, CredentialsError, SkywardError

__all__ = ["KeySource", "Keys", "Login", "Releasing", "Secret", "awaited", "secret", "using_loop"]

T = TypeVar("T")

ANSWER_TIMEOUT = 60.0
"""Seconds that a coroutine which gives keys may take."""

RENEW_BEFORE = 60.0
"""Seconds before the end of keys at which they are asked for again."""

Secret = str | Callable[[], str | Awaitable[str]]
"""A key as it is, or what returns or awaits it."""

_LOOP: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("skyward_storage_loop", default=None)
"""The event loop of the caller, in which coroutines that give keys run; None where the caller has none."""


@frozen(kw_only=True)
class Keys:
    """
    Hold the keys of an object store; none is in its repr.

    Args:
        access_key: Id of the key.
        secret_key: The key itself.
        session_token: Token of a temporary session.
        expires_at: When they end, in seconds since 1970; None if nothing says so.
        id: What a source that made them calls them, so that it can delete them.

    >>> Keys(access_key="AKIA", secret_key="hidden")
    Keys(expires_at=None)
    """

    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    id: str = field(default="", repr=False)

    @property
    def texts(self) -> tuple[str, ...]:
        """Return all that must be read in no error and no log."""
        return tuple(filter(None, (self.access_key, self.secret_key, self.session_token)))


KeySource = Callable[[], Keys | Awaitable[Keys]]
"""What returns or awaits both keys at once."""


@runtime_checkable
class Releasing(Protocol):
    """Describe a source that makes keys, and deletes them when they are not needed any more."""

    async def release(self, keys: Keys) -> None:
        """
        Delete keys.

        Args:
            keys: Those that the source has made.
        """


@frozen(kw_only=True)
class Login:
    """
    Say where keys come from.

    Args:
        access_key: Id of the key, or what returns it.
        secret_key: The key itself, or what returns it.
        session_token: Token of a temporary session, or what returns it.
        source: What returns all of them at once.
    """

    access_key: Secret | None = field(default=None, repr=False)
    secret_key: Secret | None = field(default=None, repr=False)
    session_token: Secret | None = field(default=None, repr=False)
    source: KeySource | None = field(default=None, repr=False)

    def __attrs_post_init__(self) -> None:
        """Refuse half of what is needed, and more than that."""
        if (self.access_key is None) != (self.secret_key is None):
            lacking = "secret_key" if self.secret_key is None else "access_key"
            raise ConfigError(f"{lacking} is missing.", hint="Give both keys, or none to have them looked for.")
        if self.access_key is None and self.session_token is not None:
            raise ConfigError("session_token needs access_key and secret_key beside it.")
        if self.access_key is not None and self.source is not None:
            raise ConfigError("keys= stands for access_key and secret_key.", hint="Give either.")

    @property
    def given(self) -> bool:
        """Return whether keys are given, and not looked for where AWS's own tools look."""
        return self.access_key is not None or self.source is not None

    @property
    def renewable(self) -> bool:
        """Return whether asking again may bring other keys."""
        fixed = (self.access_key, self.secret_key, self.session_token)
        return self.access_key is None or any(callable(each) for each in fixed)

    def ask(self) -> Keys | None:
        """
        Return the keys as they are now; None if none are given.

        Raises:
            CredentialsError: If what gives them fails, or gives something else.
        """
        if self.source is not None:
            keys = _answer(self.source, "keys")
            if not isinstance(keys, Keys):
                raise CredentialsError(f"keys= gave {type(keys).__name__} and no Keys.")
            return keys
        if self.access_key is None or self.secret_key is None:
            return None
        token = self.session_token
        return Keys(
            access_key=_text(self.access_key, "access_key"),
            secret_key=_text(self.secret_key, "secret_key"),
            session_token=None if token is None else _text(token, "session_token"),
        )


def secret(value: object, parameter: str) -> Any:
    """
    Return a key, or what returns it; a key is never shown.

    Args:
        value: What was written.
        parameter: Name of the parameter that it was written for.

    Raises:
        ConfigError: If it is neither, or empty.

    >>> secret("", "access_key")
    Traceback (most recent call last):
    ...
    skyward.errors.ConfigError: access_key must not be empty.
    """
    if isinstance(value, str):
        if not value.strip():
            raise ConfigError(f"{parameter} must not be empty.")
        return value.strip()
    if not callable(value):
        raise ConfigError(f"{parameter} must be text or a function that returns it, not {type(value).__name__}.")
    return value


@contextmanager
def using_loop(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """
    Run coroutines that give keys in an event loop, for all that is called within.

    Args:
        loop: The loop, which must not be blocked meanwhile.
    """
    token = _LOOP.set(loop)
    try:
        yield
    finally:
        _LOOP.reset(token)


def awaited(answer: Awaitable[T], timeout: float = ANSWER_TIMEOUT) -> T:
    """
    Wait for a coroutine in the caller's event loop, or where there is none in one of its own.

    Args:
        answer: What is awaited.
        timeout: Seconds.

    Raises:
        TimeoutError: If it takes longer.
    """

    async def limited() -> T:
        return await asyncio.wait_for(answer, timeout)

    loop = _LOOP.get()
    if loop is not None and loop.is_running() and loop is not _running():
        return asyncio.run_coroutine_threadsafe(limited(), loop).result()
    if _running() is None:
        return asyncio.run(limited())
    return _in_new_thread(lambda: asyncio.run(limited()))


def _running() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that runs in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _in_new_thread(do: Callable[[], T]) -> T:
    """Do something where no event loop runs."""
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.extend((do(), None))
        except BaseException as error:
            outcome.extend((None, error))

    thread = threading.Thread(target=run, name="skyward-storage-keys", daemon=True)
    thread.start()
    thread.join()
    value, error = outcome
    if error is not None:
        raise error
    result: T = value
    return result


def _answer(given: Callable[[], Any], parameter: str) -> Any:
    """Return what a function of the user's gives, awaited where that is needed."""
    try:
        answer = given()
        return awaited(answer) if inspect.isawaitable(answer) else answer
    except SkywardError:
        raise
    except Exception as error:
        raise CredentialsError(
            f"What was given as {parameter}= raised {type(error).__name__} when it was asked for a key.",
            hint="Its own error is the cause of this one.",
        ) from error


def _text(given: Secret, parameter: str) -> str:
    """Return a key, asked for where it is not given as it is."""
    value = given if isinstance(given, str) else _answer(given, parameter)
    if not isinstance(value, str) or not value.strip():
        raise CredentialsError(f"What was given as {parameter}= gave {type(value).__name__} and no key.")
    return value.strip()
