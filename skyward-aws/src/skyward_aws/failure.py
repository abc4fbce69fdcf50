"""What an error code of AWS means: which error of ours it is, what to do, and whether to try again."""

from __future__ import annotations

import random
from collections.abc import Callable

from attrs import frozen

from skyward.provider import (
    CapacityError,
    ConfigError,
    CredentialsError,
    Limited,
    ProvisionError,
    QuotaError,
    SkywardError,
)

__all__ = ["AT_MOST", "Refusal", "code_of", "coded", "failure", "is_refusal", "pause"]

AT_MOST = 6
"""How often one call is sent, whatever happens."""

UNANSWERED = 3
"""How often it is sent to a server that gives no answer."""

_LONGEST_PAUSE, _LONGEST_BACK_OFF = 20.0, 20.0

_THROTTLED = frozenset(
    "RequestLimitExceeded Throttling ThrottlingException ThrottledException RequestThrottled "
    "RequestThrottledException TooManyRequestsException BandwidthLimitExceeded SlowDown".split()
)
_BROKEN = frozenset("InternalError InternalFailure Unavailable ServiceUnavailable InternalServerError".split())
_CAPACITY = frozenset(
    "InsufficientInstanceCapacity UnfulfillableCapacity InsufficientCapacity InsufficientHostCapacity "
    "InsufficientFreeAddressesInSubnet Unsupported SpotMaxPriceTooLow".split()
)
_QUOTA = {
    "MaxSpotInstanceCountExceeded": "Ask for a larger spot quota of this family in Service Quotas, or rent on demand.",
    "VcpuLimitExceeded": "Ask for a larger on-demand quota of this family in Service Quotas (new accounts "
    "have none for G and P), or take another family or region.",
    "InstanceLimitExceeded": "Ask for a larger quota in Service Quotas, or take another family or region.",
    "VolumeLimitExceeded": "Ask for a larger EBS quota, or delete volumes that are not needed.",
    "MaxIOPSLimitExceeded": "Ask for a larger EBS quota, or delete volumes that are not needed.",
    "AttachmentLimitExceeded": "Leave some disks out, or take an instance type that may have more.",
    "SnapshotLimitExceeded": "Delete machine images that are not needed: sky images delete --older-than 30d",
    "PendingSnapshotLimitExceeded": "Wait until other snapshots of the account are made.",
    "ConcurrentSnapshotLimitExceeded": "Wait until other snapshots of the account are made.",
}
_REGION: tuple[Limited, ...] = ("region",)
_OF_REGION = frozenset(name for name in _QUOTA if name.startswith(("Volume", "MaxIOPS")))
_CREDENTIALS = {
    "AuthFailure": "Check the keys; a region that the account has not opted into answers so as well.",
    "InvalidClientTokenId": "Check the access key.",
    "UnrecognizedClientException": "Check the access key.",
    "SignatureDoesNotMatch": "Check the secret key.",
    "IncompleteSignature": "Check the access key and the secret key.",
    "ExpiredToken": "Log in again: the session has run out.",
    "ExpiredTokenException": "Log in again: the session has run out.",
    "RequestExpired": "Set this machine's clock, or log in again.",
    "OptInRequired": "Enable the region or the service for the account.",
    "PendingVerification": "AWS is still checking the account; wait for its mail.",
    "Blocked": "AWS has blocked the account; ask its support.",
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": "Have an administrator create the service-linked role "
    "AWSServiceRoleForEC2Spot once: aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
}
_FORBIDDEN = frozenset("UnauthorizedOperation AccessDenied AccessDeniedException".split())


@frozen(kw_only=True)
class Refusal:
    """
    Hold what AWS answered instead of what was asked for.

    Args:
        code: Its error code; empty if no answer came.
        message: Its words.
        status: The HTTP status; 0 if no answer came.
        service: The service that was asked.
        operation: What it was asked for.
        region: Where.
        subject: What it was about, such as an instance type; may be empty.
        retry_after: Seconds that it asks us to wait; None if it says nothing.
    """

    code: str
    message: str
    status: int
    service: str
    operation: str
    region: str
    subject: str = ""
    retry_after: float | None = None


def code_of(error: BaseException) -> str:
    """
    Return the code of AWS that an error stands for; empty if it stands for none.

    >>> refusal = Refusal(code="AuthFailure", message="no", status=401, service="ec2", operation="X", region="r")
    >>> code_of(failure(refusal))
    'AuthFailure'
    """
    return str(getattr(error, "code", ""))


def is_refusal(error: BaseException) -> bool:
    """
    Return whether AWS refused what was asked for, so that it was not done; without an answer it may have been.

    >>> is_refusal(TimeoutError())
    False
    """
    return code_of(error) not in ("", *_BROKEN)


def coded(*codes: str) -> Callable[[BaseException], bool]:
    """
    Return what says whether an error has one of some codes, as `unless` takes it.

    Args:
        codes: The codes, or what they begin with.

    >>> coded("InvalidGroup")(TimeoutError())
    False
    """
    return lambda error: code_of(error).startswith(codes)


def pause(refusal: Refusal, attempt: int) -> float | None:
    """
    Return how long to wait before a call is sent again; None for never.

    All our calls may be repeated: those that make something carry a name or a token.

    Args:
        refusal: What came back.
        attempt: How often it was sent already.

    >>> full = Refusal(code="VcpuLimitExceeded", message="", status=400, service="ec2", operation="X", region="r")
    >>> pause(full, 1) is None
    True
    """
    throttled = refusal.code in _THROTTLED or refusal.status == 429
    # No capacity may come with a status of 500, which is no trouble of the service.
    broken = refusal.code in _BROKEN or (refusal.status >= 500 and refusal.code not in _CAPACITY) or not refusal.status
    most = AT_MOST if refusal.status else UNANSWERED
    if attempt >= most or not (throttled or broken):
        return None
    longest = min(_LONGEST_BACK_OFF, (1.0 if throttled else 0.25) * 2 ** (attempt - 1))
    wanted = random.uniform(longest / 2, longest)
    return max(wanted, min(refusal.retry_after or 0.0, _LONGEST_PAUSE))


def failure(refusal: Refusal) -> SkywardError:
    """
    Make the error that a refusal means to the user.

    Args:
        refusal: What came back.

    >>> refusal = Refusal(code="InsufficientInstanceCapacity", message="None left.", status=500, service="ec2",
    ...                   operation="RunInstances", region="us-east-1", subject="g5.xlarge in us-east-1a")
    >>> print(failure(refusal).message)
    AWS refused RunInstances of g5.xlarge in us-east-1a: InsufficientInstanceCapacity: None left.
    """
    kind, hint = _kind(refusal)
    subject = f" of {refusal.subject}" if refusal.subject else ""
    place = "" if refusal.region in refusal.subject else f" in {refusal.region}"
    said = f"{refusal.code}: {refusal.message}" if refusal.code else refusal.message
    verb = "refused" if refusal.code else "gave no answer to"
    error = kind(f"AWS {verb} {refusal.operation}{subject}{place}: {said.rstrip('. ')}.", provider="aws", hint=hint)
    error.code = refusal.code  # type: ignore[attr-defined]
    if isinstance(error, QuotaError) and refusal.code in _OF_REGION:
        error.of = _REGION
    return error


def _kind(refusal: Refusal) -> tuple[type[SkywardError], str | None]:
    code = refusal.code
    if code in _CAPACITY:
        return CapacityError, "Try another zone, region or instance type, or the other market."
    if code in _QUOTA:
        return QuotaError, _QUOTA[code]
    if code in _CREDENTIALS:
        return CredentialsError, _CREDENTIALS[code]
    if code in _FORBIDDEN:
        permission = f"{refusal.service}:{refusal.operation}"
        return CredentialsError, f"Give the user or role the permission {permission}; docs/aws.md has the policy."
    if code in _THROTTLED or code in _BROKEN or not code or refusal.status >= 500:
        return ProvisionError, "It was tried several times; try again later."
    return (ConfigError if code.startswith("Invalid") else ProvisionError), None
