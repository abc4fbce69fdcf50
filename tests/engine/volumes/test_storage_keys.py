"""Keys of a store are asked for on the client, however they are given."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from attrs import frozen

from skyward.engine.volumes.storage_keys import keys_of
from skyward.errors import CredentialsError
from skyward_storage import Keys, Storage


@frozen
class Other:
    """Stand for a storage of another kind."""

    access_key: Any = "id"
    secret_key: Any = "hidden"
    endpoint: str = "http://h:1"


async def later() -> str:
    """Return a key, as a coroutine function does."""
    await asyncio.sleep(0)
    return "hidden"


@pytest.mark.parametrize("secret", ["hidden", lambda: "hidden", later, lambda: asyncio.sleep(0, "hidden")])
@pytest.mark.parametrize("kind", [Storage, Other])
def test_a_key_may_be_text_a_function_or_a_coroutine(secret: Any, kind: Any) -> None:
    """Of a `sky.Storage`, and of what has the same attributes."""
    store = Storage("http://h:1", "id", secret) if kind is Storage else Other(secret_key=secret)
    found = asyncio.run(keys_of(store, "the volume"))
    assert ("http://h:1", "id", "hidden") == (found.endpoint, found.access_key, found.secret_key)


def test_the_store_says_region_style_and_expiry() -> None:
    """They are passed on to nodes."""
    keys = Keys(access_key="id", secret_key="hidden", session_token="token", expires_at=7.0)
    store = Storage("http://h:1", keys=lambda: keys, path_style=True, region="here")
    found = asyncio.run(keys_of(store, "the volume"))
    assert ("here", True, "token", 7.0) == (found.region, found.path_style, found.session_token, found.expires_at)


def test_what_gives_no_key_is_named() -> None:
    """With the volume that it is for."""
    with pytest.raises(CredentialsError, match="The storage of the volume has no keys"):
        asyncio.run(keys_of(Other(secret_key=None), "the volume"))


def test_what_raises_is_the_cause() -> None:
    """Its text is in no message: it may have a key in it."""

    def fails() -> str:
        raise ValueError("hidden")

    with pytest.raises(CredentialsError, match="raised ValueError") as raised:
        asyncio.run(keys_of(Other(secret_key=fails), "the volume"))
    assert "hidden" not in str(raised.value)
