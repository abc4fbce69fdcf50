"""
What `sky.storage` is: one preset for each of several providers of object stores.

    with sky.storage.S3(region="us-east-1") as s3:
        s3.upload("my-bucket", "model.pt", key="checkpoints/model.pt")

Each returns a `sky.Storage` with the endpoint, the region and the kind of checksum that the provider takes.
"""

from __future__ import annotations

import re
from typing import Any

from skyward.errors import ConfigError
from skyward.model.fields.setting import choice, text
from skyward_storage.hyperstack import ENDPOINTS, HyperstackKeys
from skyward_storage.keys import Secret, secret
from skyward_storage.storage import Storage

__all__ = ["GCS", "R2", "S3", "Backblaze", "Hyperstack", "Wasabi"]

_WORD = re.compile(r"[A-Za-z0-9-]+")


def S3(  # noqa: N802
    *,
    region: str,
    access_key: Secret | None = None,
    secret_key: Secret | None = None,
    session_token: Secret | None = None,
) -> Storage:
    """
    Return Amazon S3.

    Args:
        region: The region of the buckets.
        access_key: Id of the key; None for where AWS's own tools look: variables, `~/.aws`, the role of this machine.
        secret_key: The key itself.
        session_token: Token of a temporary session.

    Raises:
        ConfigError: If a setting cannot be.

    >>> S3(region="eu-central-1").endpoint
    'https://s3.eu-central-1.amazonaws.com'
    """
    place = _word(region, "region")
    domain = "amazonaws.com.cn" if place.startswith("cn-") else "amazonaws.com"
    return Storage(
        f"https://s3.{place}.{domain}",
        access_key,
        secret_key,
        session_token=session_token,
        region=place,
    )


def R2(*, account_id: str, access_key: Secret, secret_key: Secret) -> Storage:  # noqa: N802
    """
    Return Cloudflare R2.

    Args:
        account_id: Id of the account, as the dashboard shows it.
        access_key: Id of an R2 API token.
        secret_key: Its secret.

    Raises:
        ConfigError: If a setting cannot be.

    >>> R2(account_id="0123abcd", access_key="id", secret_key="hidden").endpoint
    'https://0123abcd.r2.cloudflarestorage.com'
    """
    # It takes no CRC32 of a whole object that is sent in parts.
    endpoint = f"https://{_word(account_id, 'account_id')}.r2.cloudflarestorage.com"
    return _elsewhere(endpoint, "auto", access_key=access_key, secret_key=secret_key)


def GCS(*, access_key: Secret, secret_key: Secret) -> Storage:  # noqa: N802
    """
    Return Google Cloud Storage, by its XML API.

    Args:
        access_key: Id of an HMAC key.
        secret_key: Its secret.

    Raises:
        ConfigError: If a setting cannot be.

    >>> GCS(access_key="GOOG1E", secret_key="hidden").endpoint
    'https://storage.googleapis.com'
    """
    return _elsewhere("https://storage.googleapis.com", "auto", access_key=access_key, secret_key=secret_key)


def Wasabi(*, region: str, access_key: Secret, secret_key: Secret) -> Storage:  # noqa: N802
    """
    Return Wasabi.

    Args:
        region: The region of the buckets, such as `"eu-central-1"`.
        access_key: Id of the key.
        secret_key: The key itself.

    Raises:
        ConfigError: If a setting cannot be.

    >>> Wasabi(region="eu-central-1", access_key="id", secret_key="hidden").endpoint
    'https://s3.eu-central-1.wasabisys.com'
    """
    place = _word(region, "region")
    return _elsewhere(f"https://s3.{place}.wasabisys.com", place, access_key=access_key, secret_key=secret_key)


def Backblaze(*, region: str, key_id: Secret, app_key: Secret) -> Storage:  # noqa: N802
    """
    Return Backblaze B2, by its API that speaks S3.

    Args:
        region: The region of the account, as in the bucket's endpoint: `"us-west-004"`.
        key_id: Id of an application key.
        app_key: The key itself.

    Raises:
        ConfigError: If a setting cannot be.

    >>> Backblaze(region="us-west-004", key_id="id", app_key="hidden").endpoint
    'https://s3.us-west-004.backblazeb2.com'
    """
    place = _word(region, "region")
    return _elsewhere(f"https://s3.{place}.backblazeb2.com", place, key_id=key_id, app_key=app_key)


def Hyperstack(*, api_key: Secret, region: str = "CANADA-1") -> Storage:  # noqa: N802
    """
    Return the object storage of Hyperstack.

    A pair of keys is made through Hyperstack's API at the first request, and deleted when the block is left.

    Args:
        api_key: The account's API key, or what returns it.
        region: The region of the buckets.

    Raises:
        ConfigError: If a setting cannot be.

    >>> Hyperstack(api_key="hidden").endpoint
    'https://ca1.obj.nexgencloud.io'
    """
    place = choice(region, "region", ENDPOINTS)
    source = HyperstackKeys(api_key=secret(api_key, "api_key"), region=place)
    return Storage(ENDPOINTS[place], path_style=True, region=place, keys=source, checksum="MD5")


def _elsewhere(endpoint: str, region: str, **pair: Any) -> Storage:
    """Return a store that is not AWS's: AWS's own keys are never sent there, and checksums are those of HTTP."""
    for parameter, value in pair.items():
        if value is None:
            raise ConfigError(f"{parameter} must not be None.", hint="It may come from a variable that is not set.")
    access_key, secret_key = (secret(value, parameter) for parameter, value in pair.items())
    return Storage(endpoint, access_key, secret_key, path_style=True, region=region, checksum="MD5")


def _word(value: object, parameter: str) -> str:
    """Return what is part of an address."""
    word = text(value, parameter)
    if not _WORD.fullmatch(word):
        raise ConfigError(f"{parameter} must be letters, digits and hyphens, not {word!r}.")
    return word
