"""Where buckets are that a volume gives no storage for: Spaces in the droplets' region."""

from __future__ import annotations

from collections.abc import Mapping

from skyward.provider import BucketStorage, with_keys

__all__ = ["KEY", "SECRET", "bucket_storage"]

# As DigitalOcean's own Terraform provider looks for them: its reference, arguments `spaces_access_id` and
# `spaces_secret_key`, June 2025. The API's token does not open Spaces.
KEY, SECRET = "SPACES_ACCESS_KEY_ID", "SPACES_SECRET_ACCESS_KEY"


def bucket_storage(region: str, environment: Mapping[str, str]) -> BucketStorage:
    """
    Return Spaces of a region.

    Args:
        region: Its slug.
        environment: The variables in which the keys are.

    Raises:
        CredentialsError: If a key is missing.

    >>> bucket_storage("nyc3", {"SPACES_ACCESS_KEY_ID": "id", "SPACES_SECRET_ACCESS_KEY": "hidden"}).endpoint
    'https://nyc3.digitaloceanspaces.com'
    """
    return with_keys(
        BucketStorage(endpoint=f"https://{region}.digitaloceanspaces.com", region=region),
        (KEY, SECRET),
        environment,
        "A volume without storage is in DigitalOcean's Spaces, which have keys of their own",
        provider="digitalocean",
        hint="Make a key under Spaces Object Storage, Access Keys, or give the volume its storage=.",
    )
