"""Where buckets are that a volume gives no storage for: S3 in the machines' region."""

from __future__ import annotations

from attrs import evolve

from skyward.provider import BucketStorage
from skyward_aws.region import Region

__all__ = ["bucket_storage"]


async def bucket_storage(region: Region, profile: str | None) -> BucketStorage:
    """
    Return S3 of a region, opened by the machines' own role if they have one, else by the keys that we use ourselves.

    Args:
        region: Where.
        profile: The machines' instance profile; None for none.

    Raises:
        NoCredentialsError: If there are no keys.
    """
    endpoint = await region.account.endpoint("s3", region.name)
    # Another address than AWS's is that of a server which has no names for buckets.
    storage = BucketStorage(endpoint=endpoint, region=region.name, path_style=".amazonaws.com" not in endpoint)
    if profile:
        return storage
    keys = await region.account.keys()
    return evolve(
        storage,
        access_key=keys.access_key,
        secret_key=keys.secret_key,
        session_token=keys.session_token,
        expires_at=keys.expires_at,
    )
