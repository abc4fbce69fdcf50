"""
Where a bucket is, and what opens it.
"""

from __future__ import annotations

from attrs import field, frozen

__all__ = ["BucketStorage"]


@frozen(kw_only=True)
class BucketStorage:
    """
    Say where an object store is that speaks S3, and which keys open it; no key is in its repr.

    Args:
        endpoint: Its address, such as `"https://s3.eu-central-1.amazonaws.com"`.
        region: The region that requests are signed for; None for `"us-east-1"`.
        path_style: Whether the bucket stands in the path of a request, and not in the name of the host.
        access_key: Id of the key; None for the machine's own role, as of an instance profile.
        secret_key: The key itself.
        session_token: Token of a temporary session.
        expires_at: When the keys end, in seconds since 1970; None if they do not.

    >>> BucketStorage(endpoint="https://s3.example.org", access_key="id", secret_key="hidden")
    BucketStorage(endpoint='https://s3.example.org', region=None, path_style=False, expires_at=None)
    """

    endpoint: str
    region: str | None = None
    path_style: bool = False
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
