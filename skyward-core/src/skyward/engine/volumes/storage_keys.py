"""The keys of an object store, asked for on the client: text, functions, coroutines, or the store's own way."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

from skyward.errors import CredentialsError, SkywardError
from skyward.model.instances.bucket_storage import BucketStorage

__all__ = ["KEYS_WITHIN", "keys_of"]

KEYS_WITHIN = 60.0
"""Seconds in which what gives keys has to give them."""


async def keys_of(storage: Any, title: str) -> BucketStorage:
    """
    Return where an object store is and what opens it now.

    Args:
        storage: A `sky.Storage`, or what has the same attributes: `endpoint`, and `credentials_async`, `credentials` or
            `access_key` and `secret_key`; perhaps `region`, `path_style` and `session_token`.
        title: What errors call the volume that it is for.

    Raises:
        CredentialsError: If there are no keys, or what gives them fails.
    """
    try:
        async with asyncio.timeout(KEYS_WITHIN):
            access, secret, token, expires = await _keys(storage)
    except SkywardError:
        raise
    except TimeoutError:
        raise CredentialsError(f"The keys for {title} were not given within {KEYS_WITHIN:g} s.") from None
    except Exception as error:
        raise CredentialsError(
            f"The keys for {title} could not be had: what gives them raised {type(error).__name__}.",
            hint="Its own error is the cause of this one.",
        ) from error
    if not all(isinstance(each, str) and each for each in (access, secret)):
        raise CredentialsError(f"The storage of {title} has no keys.", hint="Give access_key= and secret_key= to it.")
    return BucketStorage(
        endpoint=storage.endpoint,
        region=getattr(storage, "region", None),
        path_style=bool(getattr(storage, "path_style", False)),
        access_key=access,
        secret_key=secret,
        session_token=token or None,
        expires_at=expires,
    )


async def _keys(storage: Any) -> tuple[Any, Any, Any, float | None]:
    ask: Callable[[], Any] | None = getattr(storage, "credentials_async", None)
    if ask is None:
        ask = getattr(storage, "credentials", None)
    if ask is None:
        access, secret, token = [
            await _given(getattr(storage, name, None)) for name in ("access_key", "secret_key", "session_token")
        ]
        return access, secret, token, None
    keys = await _given(ask)
    return keys.access_key, keys.secret_key, getattr(keys, "session_token", None), getattr(keys, "expires_at", None)


async def _given(value: Any) -> Any:
    """Return a value, asked for where it is a function; one that blocks has a thread."""
    if not callable(value):
        return value
    if inspect.iscoroutinefunction(value):
        return await value()
    answer = await asyncio.to_thread(value)
    return await answer if inspect.isawaitable(answer) else answer
