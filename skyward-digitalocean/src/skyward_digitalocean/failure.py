"""What a refusal of DigitalOcean means: which error of ours it is, and what to do."""

from __future__ import annotations

from skyward.provider import (
    CapacityError,
    ConfigError,
    CredentialsError,
    ErrorRow,
    ProvisionError,
    QuotaError,
    Reply,
    meaning_by,
)

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
    "GET /v2/account": "account:read",
    "GET /v2/account/keys": "ssh_key:read",
    "POST /v2/account/keys": "ssh_key:create",
    "DELETE /v2/account/keys": "ssh_key:delete",
    "GET /v2/regions": "regions:read",
    "GET /v2/sizes": "sizes:read and regions:read",
    "GET /v2/droplets": "droplet:read",
    "POST /v2/droplets": "droplet:create, tag:create, ssh_key:read and image:read, and vpc:read for a VPC",
    "DELETE /v2/droplets": "droplet:delete",
    "GET /v2/tags": "tag:read",
    "GET /v2/volumes": "block_storage:read",
    "GET /v2/vpcs": "vpc:read",
    "POST /v2/tags": "tag:create",
    "DELETE /v2/tags": "tag:delete",
}
_ODD = "DigitalOcean gives no reason that is known here; the next offer is tried."
_POST = f"POST {CREATE}"


def _rights(reply: Reply) -> str:
    """Name the scopes that a call needs."""
    path = "/".join(reply.path.partition("?")[0].split("/")[: 4 if "/account/keys" in reply.path else 3])
    tagging = reply.path.endswith("/resources")
    scopes = "tag:create and droplet:update" if tagging else _SCOPES.get(f"{reply.method} {path}")
    return f"Give the token {scopes or 'the scope that this needs'}, or see whether the account is locked."


# Capacity, quota and a wrong body share the status 422, and only the words tell.
meaning = meaning_by(
    (
        ErrorRow(CredentialsError, "Check the token: it is wrong, or was revoked.", status=(401,)),
        ErrorRow(CredentialsError, _rights, status=(403,)),
        ErrorRow(ConfigError, "Check the image, and the VPC.", call=_POST, status=(404,)),
        # Droplets are counted in all regions together; those with GPUs have limits of their own.
        ErrorRow(
            QuotaError,
            "Ask DigitalOcean for a larger limit; for GPUs its support raises it.",
            call=_POST,
            status=(422,),
            words=_QUOTA,
            of=("kind",),
        ),
        ErrorRow(CapacityError, "Try another region or size.", call=_POST, status=(422,), words=_NO_CAPACITY),
        ErrorRow(CapacityError, _ODD, call=_POST, status=(422,)),
        ErrorRow(ProvisionError, status=(409, 422)),
    )
)
"""Returns what a reply means; None leaves it to its status."""


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
