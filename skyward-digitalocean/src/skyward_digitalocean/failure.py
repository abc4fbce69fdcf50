"""What a refusal of DigitalOcean means: which error of ours it is, and what to do."""

from __future__ import annotations

from skyward.provider import CapacityError, ConfigError, CredentialsError, Meaning, ProvisionError, QuotaError, Reply

__all__ = ["CREATE", "is_unknown", "meaning"]

CREATE = "/v2/droplets"

_NO_CAPACITY = (
    "not available",
    "unavailable",
    "not currently available",
    "no capacity",
    "out of capacity",
    "insufficient capacity",
    "sold out",
    "available_regions",
)
_QUOTA = ("droplet limit", "exceed your", "limit exceeded", "reached the limit", "limit reached")
_SCOPES = {
    ("GET", "/v2/account"): "account:read",
    ("GET", "/v2/account/keys"): "ssh_key:read",
    ("POST", "/v2/account/keys"): "ssh_key:create",
    ("DELETE", "/v2/account/keys"): "ssh_key:delete",
    ("GET", "/v2/regions"): "regions:read",
    ("GET", "/v2/sizes"): "sizes:read and regions:read",
    ("GET", "/v2/droplets"): "droplet:read",
    (
        "POST",
        "/v2/droplets",
    ): "droplet:create, tag:create, ssh_key:read and image:read, and vpc:read for a VPC",
    ("DELETE", "/v2/droplets"): "droplet:delete",
    ("GET", "/v2/tags"): "tag:read",
    ("GET", "/v2/volumes"): "block_storage:read",
    ("GET", "/v2/vpcs"): "vpc:read",
    ("POST", "/v2/tags"): "tag:create",
    ("DELETE", "/v2/tags"): "tag:delete",
}
_TAGGING = "tag:create and droplet:update"
_ODD = "DigitalOcean gives no reason that is known here; the next offer is tried."


def meaning(reply: Reply) -> Meaning | None:
    """
    Return what a reply means; None leaves it to its status.

    Capacity, quota and a wrong body share the status 422, and only the words tell.

    Args:
        reply: What came back.

    >>> full = Reply(method="POST", path=CREATE, status=422, text='{"message": "Region is not available"}')
    >>> meaning(full).kind.__name__
    'CapacityError'
    """
    creating = _is_create(reply)
    if reply.status == 401:
        return Meaning(kind=CredentialsError, hint="Check the token: it is wrong, or was taken back.")
    if reply.status == 403:
        return Meaning(kind=CredentialsError, hint=_rights(reply))
    if creating and reply.status == 404:
        return Meaning(kind=ConfigError, hint="Check the image, and the VPC.")
    if creating and reply.status == 422:
        said = reply.text.lower()
        if any(phrase in said for phrase in _QUOTA):
            hint = "Ask DigitalOcean for a larger limit; for GPUs its support raises it."
            # Droplets are counted in all regions together; those with GPUs have limits of their own.
            return Meaning(kind=QuotaError, hint=hint, of=("kind",))
        if any(phrase in said for phrase in _NO_CAPACITY):
            return Meaning(kind=CapacityError, hint="Try another region or size.")
        return Meaning(kind=CapacityError, hint=_ODD)
    if reply.status in (409, 422):
        return Meaning(kind=ProvisionError)
    return None


def is_unknown(reply: Reply) -> bool:
    """
    Return whether a refusal may as well mean that what we ask for is wrong.

    Args:
        reply: What came back.

    >>> is_unknown(Reply(method="POST", path=CREATE, status=422, text='{"message": "Name is invalid"}'))
    True
    """
    found = meaning(reply)
    return found is not None and found.hint == _ODD


def _is_create(reply: Reply) -> bool:
    return (reply.method, reply.path) == ("POST", CREATE)


def _rights(reply: Reply) -> str:
    """Name the scopes that a call needs."""
    path = "/".join(reply.path.partition("?")[0].split("/")[: 4 if "/account/keys" in reply.path else 3])
    scopes = _TAGGING if reply.path.endswith("/resources") else _SCOPES.get((reply.method, path))
    wanted = f"Give the token {scopes}" if scopes else "Give the token the scope that this needs"
    return f"{wanted}, or see whether the account is locked."
