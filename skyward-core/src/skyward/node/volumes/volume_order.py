"""What a node is to have at a folder: a bucket, where it is, and the keys that open it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import asdict, field, fields, frozen

from skyward.errors import ProtocolError

__all__ = ["VolumeOrder"]


@frozen(kw_only=True)
class VolumeOrder:
    """
    Say which bucket is to be at which folder; no key is in its repr.

    Args:
        bucket: The bucket.
        prefix: The folder in it, with a slash at its end; empty for all of it.
        mount: The folder on the node.
        read_only: Whether nothing is written to the bucket.
        synced: Whether it is copied rather than mounted.
        endpoint: Address of the object store.
        region: The region that requests are signed for.
        path_style: Whether the bucket stands in the path of a request, and not in the name of the host.
        access_key: Id of the key; None for the machine's own role.
        secret_key: The key itself.
        session_token: Token of a temporary session.
        expires_at: When the keys end, in seconds since 1970; None if they do not.

    >>> order = VolumeOrder(bucket="b-1", mount="/data", endpoint="https://s3.example.org", region="us-east-1")
    >>> VolumeOrder.from_dict(order.to_dict()) == order
    True
    """

    bucket: str
    mount: str
    endpoint: str
    region: str
    prefix: str = ""
    read_only: bool = True
    synced: bool = False
    path_style: bool = False
    access_key: str | None = field(default=None, repr=False)
    secret_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None

    @property
    def title(self) -> str:
        """Return what errors call it."""
        return f"the volume {self.bucket + '/' + self.prefix if self.prefix else self.bucket!r} at {self.mount}"

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold, keys among it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> VolumeOrder:
        """
        Read what `to_dict` returned.

        Raises:
            ProtocolError: If it is something else.
        """
        names = [each.name for each in fields(cls)]
        try:
            return cls(**{name: said[name] for name in names})
        except KeyError as error:
            raise ProtocolError(f"An order of a volume lacks {error}.") from None
