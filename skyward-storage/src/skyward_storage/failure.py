"""What an error code of an object store means: which error of ours it is, what to do, and whether to try again."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from skyward.errors import (
    AccessDeniedError,
    ChecksumError,
    NoSuchBucketError,
    NoSuchKeyError,
    StorageError,
    StorageUnavailableError,
)

__all__ = ["AT_MOST", "Refusal", "failure", "is_stale", "pause"]

AT_MOST = 6
"""How often one request is sent, whatever happens."""

UNANSWERED = 4
"""How often it is sent to a server that gives no answer."""

LONGEST_PAUSE = 20.0
"""Seconds between two attempts."""

_LONGEST_BACK_OFF = 20.0

EXPIRED = frozenset("ExpiredToken ExpiredTokenException TokenRefreshRequired InvalidToken".split())
"""Codes of keys that were good once."""

ROTATED = frozenset("InvalidAccessKeyId SignatureDoesNotMatch InvalidClientTokenId".split())
"""Codes of keys that are unknown, as those are that were replaced by others."""

_KEYS = {
    "InvalidAccessKeyId": "Check access_key, and that it is one of this endpoint.",
    "SignatureDoesNotMatch": "Check secret_key.",
    "InvalidClientTokenId": "Check access_key.",
    "RequestTimeTooSkewed": "Set this machine's clock.",
    **dict.fromkeys(EXPIRED, "Log in again: the session has run out."),
    **dict.fromkeys(
        "CredentialRetrievalError PartialCredentialsError NoCredentialsError TokenRetrievalError SSOError "
        "SSOTokenLoadError UnauthorizedSSOTokenError MetadataRetrievalError".split(),
        "Look at the variables AWS_... and at ~/.aws, or log in again.",
    ),
}
_DENIED = frozenset("AccessDenied AllAccessDisabled AccountProblem Forbidden UnauthorizedAccess 401 403".split())
_BUCKET = frozenset(("NoSuchBucket",))
_KEY = frozenset("NoSuchKey NoSuchVersion".split())
_REGION = frozenset(
    "PermanentRedirect TemporaryRedirect AuthorizationHeaderMalformed IllegalLocationConstraintException "
    "301 307".split()
)
_CHECKSUM = frozenset("BadDigest InvalidDigest XAmzContentChecksumMismatch XAmzContentSHA256Mismatch".split())
_THROTTLED = frozenset("SlowDown Throttling ThrottlingException RequestLimitExceeded TooManyRequests 429 503".split())
_BROKEN = frozenset(
    "InternalError ServiceUnavailable Unavailable RequestTimeout OperationAborted 408 500 502 504".split()
)
_UNSUPPORTED = frozenset("NotImplemented InvalidArgument InvalidRequest MissingContentMD5".split())

_PERMISSIONS = {
    "HeadObject": "s3:GetObject",
    "GetObject": "s3:GetObject",
    "HeadBucket": "s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "DeleteObject": "s3:DeleteObject",
    "DeleteObjects": "s3:DeleteObject",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "ListParts": "s3:ListMultipartUploadParts",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
}


@frozen(kw_only=True)
class Refusal:
    """
    Hold what an object store answered instead of what was asked for.

    Args:
        code: Its error code; empty if no answer came.
        message: Its words, or what went wrong on the way.
        status: The HTTP status; 0 if no answer came.
        operation: What it was asked for, as S3 calls it.
        endpoint: Its address.
        bucket: The bucket.
        key: The object, or what keys begin with; None if it was about the bucket.
        region: Where the server says that the bucket is.
        retry_after: Seconds that it asks us to wait; None if it says nothing.
        hopeless: Whether an answer cannot come, as where certificates are wrong.
    """

    code: str
    message: str
    status: int
    operation: str
    endpoint: str
    bucket: str | None = None
    key: str | None = None
    region: str | None = None
    retry_after: float | None = None
    hopeless: bool = False


def is_stale(refusal: Refusal) -> bool:
    """
    Return whether other keys may be accepted where these were refused.

    An answer to HEAD has no body and so no code but its status.

    Args:
        refusal: What came back.

    >>> is_stale(Refusal(code="ExpiredToken", message="", status=400, operation="PutObject", endpoint="https://s"))
    True
    """
    return refusal.code in EXPIRED | ROTATED or (refusal.operation.startswith("Head") and refusal.status == 403)


def pause(refusal: Refusal, attempt: int, dice: float) -> float | None:
    """
    Return how long to wait before a request is sent again; None for never.

    Args:
        refusal: What came back.
        attempt: How often it was sent already.
        dice: A number from 0 to 1, by which clients that were refused together come back apart.

    >>> slow = Refusal(code="SlowDown", message="", status=503, operation="PutObject", endpoint="https://s")
    >>> pause(slow, 1, 1.0), pause(slow, 6, 1.0)
    (1.0, None)
    """
    throttled = refusal.code in _THROTTLED or refusal.status in (429, 503)
    broken = refusal.code in _BROKEN or refusal.code in _CHECKSUM or refusal.status >= 500
    unanswered = refusal.status == 0 and not refusal.hopeless
    most = UNANSWERED if unanswered else AT_MOST
    if attempt >= most or not (throttled or broken or unanswered) or refusal.code == "NotImplemented":
        return None
    longest = min(_LONGEST_BACK_OFF, (1.0 if throttled else 0.2) * 2.0 ** (attempt - 1))
    return max(longest * (0.5 + dice / 2), min(refusal.retry_after or 0.0, LONGEST_PAUSE))


def failure(refusal: Refusal, attempts: int = 1) -> StorageError:
    """
    Make the error that a refusal means to the user.

    Args:
        refusal: What came back.
        attempts: How often the request was sent.

    >>> refusal = Refusal(code="NoSuchBucket", message="The specified bucket does not exist.", status=404,
    ...                   operation="PutObject", endpoint="https://s3.example.org", bucket="data", key="model.pt")
    >>> print(failure(refusal).message)
    https://s3.example.org refused PutObject of s3://data/model.pt: NoSuchBucket: The specified bucket does not exist.
    """
    kind, hint = _kind(refusal)
    place = "" if refusal.bucket is None else f" of s3://{refusal.bucket}/{refusal.key or ''}"
    said = ": ".join(filter(None, (refusal.code, refusal.message))).rstrip(". ")
    verb = "refused" if refusal.status else "gave no answer to"
    times = f" {attempts} times" if attempts > 1 else ""
    facts: dict[str, Any] = {"endpoint": refusal.endpoint, "bucket": refusal.bucket, "key": refusal.key}
    return kind(
        f"{refusal.endpoint} {verb} {refusal.operation}{place}{times}: {said}.", code=refusal.code, hint=hint, **facts
    )


def _kind(refusal: Refusal) -> tuple[type[StorageError], str | None]:
    """Return the class of the error, and what to do about it."""
    code, status = refusal.code, refusal.status
    if code in _BUCKET:
        return NoSuchBucketError, "Create it, or check its name and the endpoint."
    if code in _KEY or (code == "404" and refusal.key is not None):
        return NoSuchKeyError, "List what is there with ls()."
    if code == "404":
        return NoSuchBucketError, "Create it, or check its name and the endpoint."
    if code in _KEYS:
        return AccessDeniedError, _KEYS[code]
    if code in _REGION or status in (301, 307):
        where = f'region="{refusal.region}"' if refusal.region else "the region and the endpoint of the bucket"
        return StorageError, f"The bucket is elsewhere: give {where}."
    if code in _DENIED or status in (401, 403):
        permission = _PERMISSIONS.get(refusal.operation, "s3:PutObject")
        return AccessDeniedError, f"Check the keys; they need the permission {permission}, or its like, on the bucket."
    if code in _CHECKSUM:
        return ChecksumError, "The bytes that arrived are others than were sent; look at the network on the way."
    if not status:
        return StorageUnavailableError, "Check the endpoint, and whether this machine reaches it."
    if code in _UNSUPPORTED:
        return StorageError, 'If the server does not know the checksum of the request, try checksum="MD5".'
    if code in _THROTTLED or code in _BROKEN or status >= 500 or status == 429:
        return StorageUnavailableError, "Try again later."
    return StorageError, None
