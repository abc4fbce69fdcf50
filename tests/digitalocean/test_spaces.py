"""Where the buckets are of a volume without storage: Spaces in the droplets' region."""

from __future__ import annotations

import asyncio

import pytest

import skyward as sky
from skyward.errors import CredentialsError
from skyward_digitalocean.spaces import KEY, SECRET, bucket_storage


def test_spaces_are_in_the_region_and_have_keys_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """They show up in no text."""
    monkeypatch.setenv(KEY, "id")
    monkeypatch.setenv(SECRET, "hidden")
    provider = sky.DigitalOcean(token="t")
    found = asyncio.run(provider.skyward_volume_storage("ams3"))
    assert found is not None
    assert ("https://ams3.digitaloceanspaces.com", "ams3", "id", "hidden") == (
        found.endpoint,
        found.region,
        found.access_key,
        found.secret_key,
    )
    assert "hidden" not in repr(found)
    assert asyncio.run(provider.skyward_volume_storage(None)) is None


@pytest.mark.parametrize(
    ("environment", "words"),
    [({}, f"{KEY} and {SECRET} are not set"), ({KEY: "id"}, f"{SECRET} is not set"), ({SECRET: "s"}, f"{KEY} is not")],
)
def test_without_keys_the_error_says_which(environment: dict[str, str], words: str) -> None:
    """The API's token does not open Spaces."""
    with pytest.raises(CredentialsError, match=words):
        bucket_storage("nyc3", environment)
