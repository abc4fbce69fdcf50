"""Where the buckets are of a volume without storage: S3 in the region, by a role or by the keys that are used here."""

from __future__ import annotations

import asyncio
import os

import pytest

import skyward as sky
from skyward.errors import NoCredentialsError
from skyward_aws.account import Account, Login
from skyward_aws.buckets import bucket_storage
from skyward_aws.region import Region

HERE = Login(access_key="AKIA", secret_key="hidden", session_token="token")


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no settings of AWS's beside those of a test."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_the_keys_of_the_session_open_s3_in_the_region() -> None:
    """They show up in no text."""
    found = asyncio.run(bucket_storage(Region(Account(HERE), "eu-central-1"), None))
    assert ("https://s3.eu-central-1.amazonaws.com", "eu-central-1", False) == (
        found.endpoint,
        found.region,
        found.path_style,
    )
    assert ("AKIA", "hidden", "token", None) == (
        found.access_key,
        found.secret_key,
        found.session_token,
        found.expires_at,
    )
    assert "hidden" not in repr(found)
    assert "hidden" not in repr(asyncio.run(Account(HERE).keys()))


def test_a_machine_with_a_role_needs_no_keys() -> None:
    """None are looked for."""
    provider = sky.AWS(instance_profile="training")
    found = asyncio.run(provider.skyward_volume_storage("us-west-2"))
    assert (None, None) == (found.access_key, found.secret_key)
    assert "us-west-2" in found.endpoint


def test_another_server_has_its_buckets_in_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the variable of AWS's own tools names it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    found = asyncio.run(bucket_storage(Region(Account(HERE), "us-east-1"), None))
    assert ("http://127.0.0.1:9000", True) == (found.endpoint, found.path_style)


def test_keys_that_end_say_when(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that they are asked for again."""
    for name, value in {"ACCESS_KEY_ID": "a", "SECRET_ACCESS_KEY": "s", "SESSION_TOKEN": "t"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_CREDENTIAL_EXPIRATION", "2100-01-01T00:00:00Z")
    assert 4102444800.0 == asyncio.run(bucket_storage(Region(Account(Login()), "us-east-1"), None)).expires_at


def test_without_keys_the_error_says_where_they_were_looked_for() -> None:
    """As for any other call."""
    with pytest.raises(NoCredentialsError, match=r"no credentials for AWS\. Looked at: AWS_ACCESS_KEY_ID"):
        asyncio.run(bucket_storage(Region(Account(Login()), "us-east-1"), None))
