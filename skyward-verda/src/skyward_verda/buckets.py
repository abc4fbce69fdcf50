"""Where buckets are that a volume gives no storage for: Verda's object storage."""

from __future__ import annotations

from collections.abc import Mapping

from skyward.provider import BucketStorage, CredentialsError
from skyward_verda.login import Wish, find_profile

__all__ = ["ENDPOINT", "bucket_storage"]

# What `verda object-storage configure` writes if nothing else is said: docs.verda.com, CLI, Object Storage, 2026.
ENDPOINT, REGION = "https://objects.fin-03.verda.storage", "us-east-1"


def bucket_storage(wish: Wish, environment: Mapping[str, str]) -> BucketStorage:
    """
    Return the object storage that Verda's own command was configured for, by the keys that it keeps.

    Args:
        wish: As whom the account is used.
        environment: The variables.

    Raises:
        CredentialsError: If it keeps none.
        ConfigError: If its file cannot be read.
    """
    # The names are those of `verda_s3_*` in the file of profiles, as verda-cli reads it, 2026.
    profile, shown = find_profile(wish, environment)
    key, secret = profile.get("verda_s3_access_key"), profile.get("verda_s3_secret_key")
    if not key or not secret:
        raise CredentialsError(
            f"A volume without storage is in Verda's object storage, whose keys are not in {shown}.",
            provider="verda",
            hint="Type: verda object-storage configure, or give the volume its storage=.",
        )
    return BucketStorage(
        endpoint=(profile.get("verda_s3_endpoint") or ENDPOINT).rstrip("/"),
        region=profile.get("verda_s3_region") or REGION,
        path_style=True,
        access_key=key,
        secret_key=secret,
    )
