"""Where buckets are that a volume gives no storage for: S3 in the machines' region."""

from __future__ import annotations

from attrs import evolve

from skyward.provider import BucketStorage
from skyward_aws.account import Account

__all__ = ["bucket_storage"]


async def bucket_storage(account: Account, region: str, profile: str | None) -> BucketStorage:
    """
    Return S3 of a region, opened by the machines' own role if they have one, else by the keys that we use ourselves.

    Args:
        account: Whose.
        region: Where.
        profile: The machines' instance profile; None for none.

    Raises:
        NoCredentialsError: If there are no keys.
    """
    endpoint = await account.endpoint("s3", region)
    # Another address than AWS's is that of a server which has no names for buckets.
    storage = BucketStorage(endpoint=endpoint, region=region, path_style=".amazonaws.com" not in endpoint)
    if profile:
        return storage
    keys = await account.keys()
    return evolve(
        storage,
        access_key=keys.access_key,
        secret_key=keys.secret_key,
        session_token=keys.session_token,
        expires_at=keys.expires_at,
    )
