"""What rclone says is an error with a reason and a way out."""

from __future__ import annotations

import pytest

from skyward.node.volumes.rclone_failure import failure_of, last_words, no_fuse
from skyward.node.volumes.volume_order import VolumeOrder

ORDER = VolumeOrder(bucket="b-1", mount="/data", endpoint="https://s3.example.org", region="here")


@pytest.mark.parametrize(
    ("said", "kind", "why"),
    [
        ("2026/11/25 23:00:00 ERROR : error listing: directory not found", "NoSuchBucketError", "no such bucket"),
        (
            "NoSuchBucket: The specified bucket does not exist\n\tstatus code: 404",
            "NoSuchBucketError",
            "no such bucket",
        ),
        (
            "operation error S3: ListObjects, StatusCode: 403, api error InvalidAccessKeyId",
            "AccessDeniedError",
            "refused",
        ),
        ("https response error StatusCode: 403, AccessDenied", "AccessDeniedError", "may not do that"),
        ("api error PermanentRedirect: use another endpoint", "StorageError", "another region"),
        ("failed to refresh cached credentials, no EC2 IMDS role found", "AccessDeniedError", "no role"),
        ("dial tcp: lookup nowhere.invalid: no such host", "StorageUnavailableError", "no address"),
        ("dial tcp 127.0.0.1:1: connect: connection refused", "StorageUnavailableError", "does not answer"),
        ("http: server gave HTTP response to HTTPS client", "StorageUnavailableError", "does not speak"),
        ("write /data/x: no space left on device", "ConfigError", "disk is full"),
    ],
)
def test_each_reason_has_its_error(said: str, kind: str, why: str) -> None:
    """Which names the bucket, the folder and the endpoint."""
    failure = failure_of(ORDER, said)
    assert kind == failure.kind
    assert why in failure.message
    assert "The volume 'b-1' at /data" in failure.message
    assert "https://s3.example.org" in failure.message
    assert failure.hint


def test_what_is_not_known_is_passed_on() -> None:
    """As it is, without its time."""
    assert (
        "ERROR : an unheard-of thing" in failure_of(ORDER, "2026/11/25 23:00:00 ERROR : an unheard-of thing\n").message
    )


def test_a_machine_without_fuse_is_known_by_what_is_said() -> None:
    """As in a container."""
    assert no_fuse('mount failed: exec: "fusermount3": executable file not found in $PATH')
    assert not no_fuse("directory not found")


def test_the_last_words_are_those_of_the_last_entry() -> None:
    """And nothing that a terminal would act on."""
    assert "c: d" == last_words("2026/11/25 23:00:00 a\n2026/11/25 23:00:01 \x1b[31mc:\n\td\n  \n")
    assert "" == last_words("")
