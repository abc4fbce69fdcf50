"""Each code of an object store has its class, its advice, and its number of attempts."""

from __future__ import annotations

import pytest

from skyward.errors import (
    AccessDeniedError,
    ChecksumError,
    NoSuchBucketError,
    NoSuchKeyError,
    StorageError,
    StorageUnavailableError,
)
from skyward_storage.failure import AT_MOST, LONGEST_PAUSE, UNANSWERED, Refusal, failure, is_stale, pause


def refusal(code: str, status: int = 400, **facts: object) -> Refusal:
    """Return an answer of a server that refuses."""
    usual: dict[str, object] = {"operation": "GetObject", "endpoint": "https://s", "bucket": "b", "key": "k"}
    return Refusal(code=code, message="words", status=status, **{**usual, **facts})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "status", "kind", "advice"),
    [
        ("NoSuchBucket", 404, NoSuchBucketError, "Create it"),
        ("NoSuchKey", 404, NoSuchKeyError, "ls()"),
        ("404", 404, NoSuchKeyError, "ls()"),
        ("AccessDenied", 403, AccessDeniedError, "s3:GetObject"),
        ("403", 403, AccessDeniedError, "s3:GetObject"),
        ("SignatureDoesNotMatch", 403, AccessDeniedError, "secret_key"),
        ("ExpiredToken", 400, AccessDeniedError, "Log in again"),
        ("RequestTimeTooSkewed", 403, AccessDeniedError, "clock"),
        ("PermanentRedirect", 301, StorageError, "elsewhere"),
        ("BadDigest", 400, ChecksumError, "network"),
        ("SlowDown", 503, StorageUnavailableError, "later"),
        ("InternalError", 500, StorageUnavailableError, "later"),
        ("", 0, StorageUnavailableError, "endpoint"),
        ("NotImplemented", 501, StorageError, 'checksum="MD5"'),
        ("EntityTooLarge", 400, StorageError, ""),
    ],
)
def test_a_code_has_its_class(code: str, status: int, kind: type[StorageError], advice: str) -> None:
    """And the facts are attributes."""
    error = failure(refusal(code, status))
    assert kind is type(error)
    assert advice in (error.hint or "")
    assert ("https://s", "b", "k", code) == (error.endpoint, error.bucket, error.key, error.code)


def test_a_bucket_alone_that_is_missing() -> None:
    """Where no object was asked for."""
    assert NoSuchBucketError is type(failure(refusal("404", 404, key=None, operation="HeadBucket")))


def test_where_the_bucket_is() -> None:
    """If the server says it."""
    assert 'region="eu-west-1"' in str(failure(refusal("PermanentRedirect", 301, region="eu-west-1")))


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchKey", "NoSuchBucket", "InvalidAccessKeyId", "EntityTooLarge"])
def test_what_cannot_help_is_not_tried_again(code: str) -> None:
    """It would be refused again."""
    assert pause(refusal(code), 1, 0.5) is None


@pytest.mark.parametrize(("code", "status", "most"), [("SlowDown", 503, AT_MOST), ("", 0, UNANSWERED)])
def test_attempts_have_a_bound(code: str, status: int, most: int) -> None:
    """And so has each pause."""
    pauses = [pause(refusal(code, status), attempt, 1.0) for attempt in range(1, most + 1)]
    assert pauses[-1] is None
    assert all(each is not None and 0 < each <= LONGEST_PAUSE for each in pauses[:-1])


def test_a_server_says_how_long_to_wait() -> None:
    """Within bounds."""
    assert 7.0 == pause(refusal("SlowDown", 503, retry_after=7.0), 1, 0.0)
    assert LONGEST_PAUSE == pause(refusal("SlowDown", 503, retry_after=900.0), 1, 0.0)


def test_wrong_certificates_are_not_tried_again() -> None:
    """They stay wrong."""
    assert pause(refusal("", 0, hopeless=True), 1, 0.5) is None


@pytest.mark.parametrize(
    ("code", "operation", "status", "stale"),
    [
        ("ExpiredToken", "PutObject", 400, True),
        ("InvalidAccessKeyId", "PutObject", 403, True),
        ("403", "HeadObject", 403, True),
        ("AccessDenied", "PutObject", 403, False),
    ],
)
def test_which_answers_ask_for_other_keys(code: str, operation: str, status: int, stale: bool) -> None:
    """An answer to HEAD has no code."""
    assert stale == is_stale(refusal(code, status, operation=operation))
