"""A storage is a value: it compares, hashes, pickles, and shows no key."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import cloudpickle
import pytest
from attrs.exceptions import FrozenInstanceError

import skyward as sky
from skyward.errors import ConfigError, CredentialsError
from skyward_storage import Keys, Storage

ENDPOINT = "https://s3.example.org"


def give() -> str:
    """Return a key."""
    return "hidden-secret"


async def give_later() -> str:
    """Return a key, after a while."""
    await asyncio.sleep(0)
    return "hidden-secret"


async def give_both() -> Keys:
    """Return both keys, after a while."""
    await asyncio.sleep(0)
    return Keys(access_key="hidden-id", secret_key="hidden-secret", session_token="hidden-token")


def test_it_is_a_public_name() -> None:
    """Of core, as the distribution registers it."""
    assert Storage is sky.Storage
    assert "S3" in dir(sky.storage)


def test_it_is_frozen() -> None:
    """No setting changes."""
    with pytest.raises(FrozenInstanceError):
        Storage(ENDPOINT).endpoint = "https://other"  # type: ignore[misc]


@pytest.mark.parametrize("through", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_it_travels(through: Any) -> None:
    """With its settings and its keys, but no connections."""
    settings: dict[str, Any] = {"region": "r", "checksum": "MD5", "part_size": 6 << 20, "timeout": 3}
    one = Storage(ENDPOINT, "hidden-id", give, path_style=True, **settings)
    one.credentials()
    other = through(one)
    assert one == other
    assert hash(one) == hash(other)
    assert "hidden-secret" == other.credentials().secret_key
    assert one._line is not other._line


def test_functions_travel_by_value() -> None:
    """As a call of a pool sends them."""
    one = Storage(ENDPOINT, "id", lambda: "hidden-secret")
    assert "hidden-secret" == pickle.loads(cloudpickle.dumps(one)).credentials().secret_key


def test_no_repr_shows_a_key() -> None:
    """Neither of the storage nor of its keys."""
    shown = repr(Storage(ENDPOINT, "hidden-id", "hidden-secret", session_token="hidden-token"))
    shown += repr(Storage(ENDPOINT, "hidden-id", "hidden-secret").credentials()) + repr(asyncio.run(give_both()))
    assert "hidden" not in shown
    assert ENDPOINT in shown


@pytest.mark.parametrize("secret", ["hidden-secret", give, give_later])
def test_keys_are_text_functions_or_coroutines(secret: Any) -> None:
    """From plain code, and within an event loop, plain and async."""

    async def scenario() -> list[Keys]:
        one = Storage(ENDPOINT, "id", secret)
        plain = one.credentials()
        one.close()
        return [plain, await one.credentials_async()]

    found = [Storage(ENDPOINT, "id", secret).credentials(), *asyncio.run(scenario())]
    assert ["hidden-secret"] * 3 == [keys.secret_key for keys in found]


def test_a_coroutine_runs_in_the_loop_of_the_caller() -> None:
    """What it uses may belong to that."""
    loops: list[object] = []

    async def secret() -> str:
        loops.append(asyncio.get_running_loop())
        return "hidden-secret"

    async def scenario() -> None:
        await Storage(ENDPOINT, "id", secret).credentials_async()
        assert [asyncio.get_running_loop()] == loops

    asyncio.run(scenario())


def test_both_keys_may_come_at_once() -> None:
    """With a token."""
    found = Storage(ENDPOINT, keys=give_both).credentials()
    assert ("hidden-id", "hidden-secret", "hidden-token") == (found.access_key, found.secret_key, found.session_token)


def test_keys_are_asked_for_once() -> None:
    """Until the connections are closed."""
    given: list[int] = []

    def secret() -> str:
        given.append(1)
        return "hidden-secret"

    with Storage(ENDPOINT, "id", secret) as one:
        one.credentials()
        one.credentials()
    assert 1 == len(given)
    one.credentials()
    assert 2 == len(given)


def _fails() -> str:
    raise ValueError("hidden-secret")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (_fails, r"secret_key= raised ValueError when it was asked for a key"),
        (lambda: None, r"secret_key= gave NoneType and no key"),
        (lambda: "", r"secret_key= gave str and no key"),
    ],
)
def test_what_gives_no_key_is_named(given: Any, said: str) -> None:
    """Without what it said, which may hold one."""
    with pytest.raises(CredentialsError, match=said) as caught:
        Storage(ENDPOINT, "id", given).credentials()
    assert "hidden" not in str(caught.value)


def test_a_source_that_gives_no_keys_is_named() -> None:
    """A pair of texts is none."""
    with pytest.raises(CredentialsError, match="gave tuple and no Keys"):
        Storage(ENDPOINT, keys=lambda: ("id", "secret")).credentials()  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"access_key": "id"}, "secret_key is missing"),
        ({"secret_key": "hidden"}, "access_key is missing"),
        ({"access_key": "", "secret_key": "hidden"}, "access_key must not be empty"),
        ({"access_key": 3, "secret_key": "hidden"}, "access_key must be text or a function"),
        ({"session_token": "hidden"}, "session_token needs access_key"),
        ({"access_key": "id", "secret_key": "hidden", "keys": give_both}, "Give either"),
        ({"keys": "hidden"}, "keys must be a function"),
        ({"path_style": 1}, "path_style must be True or False"),
        ({"region": ""}, "region must not be blank"),
        ({"checksum": "SHA"}, 'checksum must be "CRC32", "MD5" or None'),
        ({"part_size": 1}, "part_size must be a whole number of at least"),
        ({"part_size": 6 << 30}, "part_size must be .* at most"),
        ({"timeout": 0}, "timeout must be more than 0"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, Any], said: str) -> None:
    """Each is named, and no key is shown."""
    with pytest.raises(ConfigError, match=said) as caught:
        Storage(ENDPOINT, **settings)
    assert "hidden" not in str(caught.value)
