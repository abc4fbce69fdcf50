"""What can be known to fail before anything is rented: credentials about to run out, quotas that are too small."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from skyward.provider import CredentialsError, QuotaError, SkywardError

if TYPE_CHECKING:
    from skyward.provider import Offer
    from skyward_aws.region import Region

__all__ = ["check_life", "check_quota", "ends_at", "quota_code"]

_log = logging.getLogger("skyward.provider.aws")

TOO_SHORT = 300.0
"""Seconds that credentials have to be good for, at least."""

SHORT = 3600.0
"""Seconds below which there is a warning."""

_QUOTA_HOLDS = 600.0
_QUOTA_TIMEOUT = 3.0
_IN_PROFILES = ("aws_session_expiration", "aws_expiration", "x_security_token_expires", "expiration")
_STANDARD = ("L-1216C47A", "L-34B43A08")
_QUOTAS = {
    **dict.fromkeys(("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"), _STANDARD),
    **dict.fromkeys(("g", "gr", "vt"), ("L-DB2E81BA", "L-3819A6DF")),
    "p": ("L-417A185B", "L-7212CCBC"),
    "inf": ("L-1945791B", "L-B5D1601B"),
    "trn": ("L-2C3B7624", "L-6B0D517C"),
}
"""Codes of the quotas by family: on demand, and on the spot market; all count vCPUs."""


def ends_at(method: str, environment: Mapping[str, str], profile: Mapping[str, Any]) -> float | None:
    """
    Return when credentials run out that nothing renews, in seconds since 1970; None where that is not known.

    Args:
        method: Where the library found them, as it calls that.
        environment: The variables.
        profile: What the shared files say of the profile in use.

    >>> ends_at("env", {"AWS_CREDENTIAL_EXPIRATION": "1970-01-01T00:01:00Z"}, {})
    60.0
    >>> ends_at("assume-role", {"AWS_CREDENTIAL_EXPIRATION": "1970-01-01T00:01:00Z"}, {})
    """
    given = ""
    if method == "env":
        given = environment.get("AWS_CREDENTIAL_EXPIRATION", "")
    elif method in ("shared-credentials-file", "config-file"):
        given = next((str(profile[name]) for name in _IN_PROFILES if profile.get(name)), "")
    try:
        found = datetime.fromisoformat(given)
    except ValueError:
        return None
    # A time without a zone is of whatever zone the tool that wrote it liked.
    return found.timestamp() if found.tzinfo else None


def check_life(end: float | None, now: float) -> None:
    """
    Refuse credentials that are about to run out, and warn of those that do within the hour.

    Args:
        end: When they do, in seconds since 1970; None if that is unknown.
        now: The time.

    Raises:
        CredentialsError: If too little is left of them.
    """
    if end is None or end - now >= SHORT:
        return
    left = end - now
    if left < TOO_SHORT:
        what = f"run out in {left:.0f} s" if left > 0 else "have run out"
        raise CredentialsError(
            f"The credentials for AWS {what}; a pool could not be ended with them.",
            provider="aws",
            hint="Log in again, or use a profile whose sessions are renewed by themselves.",
        )
    _log.warning(
        "The credentials for AWS run out in %.0f minutes. A pool that is open by then ends by its machines' own "
        "watchdogs; log in again, or use a profile whose sessions are renewed by themselves.",
        left / 60,
    )


def quota_code(name: str, *, spot: bool) -> str | None:
    """
    Return the code of the quota that counts an instance type; None where it is not known.

    Args:
        name: The type.
        spot: Whether it is rented on the spot market.

    >>> quota_code("g5.xlarge", spot=False)
    'L-DB2E81BA'
    >>> quota_code("u-6tb1.metal", spot=False)
    """
    family = re.match(r"[a-z]+(?=\d)", name)
    codes = _QUOTAS.get(family[0]) if family else None
    # On the spot market the newest of these have quotas of their own.
    if codes is None or (spot and name.startswith(("p5", "p6"))):
        return None
    return codes[spot]


async def check_quota(region: Region, offer: Offer, nodes: int, *, spot: bool) -> None:
    """
    Refuse a type that the account may have none of; where Service Quotas does not answer soon, nothing is said.

    Args:
        region: Where.
        offer: The type.
        nodes: How many are wanted.
        spot: Whether on the spot market.

    Raises:
        QuotaError: If the quota is smaller than one machine.
    """
    code = quota_code(offer.instance_type, spot=spot)
    if code is None or not offer.vcpus:
        return

    async def ask() -> float | None:
        try:
            async with asyncio.timeout(_QUOTA_TIMEOUT):
                asked = {"service": "service-quotas", "ServiceCode": "ec2", "QuotaCode": code}
                answer = await region.call("GetServiceQuota", code, **asked)
            return float(answer["Quota"]["Value"])
        except (SkywardError, TimeoutError, KeyError, TypeError, ValueError) as error:
            _log.info("aws.quota_unknown code=%s: %s", code, error)
            return None

    allowed = await region.kept(("quota", code), _QUOTA_HOLDS, ask)
    if allowed is not None and allowed < offer.vcpus:
        # The account may have been given more since.
        allowed = await region.kept(("quota", code), 0.0, ask)
    if allowed is None:
        return
    market = "on the spot market" if spot else "on demand"
    if allowed < offer.vcpus:
        raise QuotaError(
            f"{offer.instance_type} has {offer.vcpus:g} vCPUs, and the account may have {allowed:g} of its family "
            f"{market} in {region} (quota {code}).",
            provider="aws",
            hint=f"Ask for a larger quota {code} in Service Quotas, or take another family, market or region.",
        )
    if allowed < offer.vcpus * nodes:
        _log.warning(
            "%d nodes of %s need %g vCPUs, and the account may have %g of its family %s in %s (quota %s).",
            nodes,
            offer.instance_type,
            offer.vcpus * nodes,
            allowed,
            market,
            region,
            code,
        )
