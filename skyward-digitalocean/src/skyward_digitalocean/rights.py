"""A token's permissions that are needed only later, checked before anything is rented."""

from __future__ import annotations

from skyward.provider import ConfigError, CredentialsError
from skyward_digitalocean.account import Account

__all__ = ["check_renewing", "check_vpc"]

_NO_TAG, _NO_DROPLET = "skyward:preflight", "1"


async def check_renewing(account: Account) -> None:
    """
    Check that the token may write a later expiry on droplets; a token of custom scopes may rent and not do that.

    A tag that there is not is to be put on a droplet that is not ours: nothing is done, and only a missing scope is
    refused as such.

    Args:
        account: The account to ask.

    Raises:
        CredentialsError: If it may not.
    """
    resources = [{"resource_id": _NO_DROPLET, "resource_type": "droplet"}]
    path = f"/v2/tags/{_NO_TAG}/resources"
    try:
        await account.api.post(path, json={"resources": resources}, also=(404, 409, 422), once=False)
    except CredentialsError as error:
        raise CredentialsError(
            f"This token may not say of droplets that their client still lives, so none is rented. {error.message}",
            provider="digitalocean",
            hint=error.hint,
        ) from error


async def check_vpc(account: Account, vpc: str) -> None:
    """
    Check that there is a network, and that the token may look at it, which a launch in it needs.

    Args:
        account: The account to ask.
        vpc: Its id.

    Raises:
        ConfigError: If there is none.
        CredentialsError: If it may not.
    """
    if await account.api.get(f"/v2/vpcs/{vpc}", also=(404,)) is None:
        raise ConfigError(
            f"DigitalOcean has no VPC {vpc!r} in this account.",
            provider="digitalocean",
            hint="Type: doctl vpcs list",
        )
