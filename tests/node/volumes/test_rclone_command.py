"""rclone is called with words that have no key in them, and an environment that has."""

from __future__ import annotations

import pytest
from attrs import evolve

from skyward.node.agent.descendants import MARK
from skyward.node.volumes.rclone_command import (
    WHOLE_UP_TO_MIB,
    check_words,
    compare_words,
    delete_words,
    environment,
    fetch_words,
    list_words,
    mount_words,
    pull_words,
    push_words,
    source,
)
from skyward.node.volumes.volume_order import VolumeOrder

ORDER = VolumeOrder(
    bucket="b-1",
    prefix="sets/",
    mount="/data",
    endpoint="https://s3.example.org",
    region="here",
    access_key="AKIA",
    secret_key="hidden",
)
BASE = {"PATH": "/bin", "AWS_PROFILE": "mine", "RCLONE_BWLIMIT": "1k", MARK: "pool-0"}


def test_keys_are_in_the_environment_and_nowhere_else() -> None:
    """A process list shows words."""
    for words in (
        check_words(ORDER),
        mount_words(ORDER, cache="/c", cache_bytes=5, version=(1, 75, 2)),
        pull_words(ORDER),
        list_words(ORDER),
        fetch_words(ORDER, "/l", "/f", few=True),
        compare_words(ORDER, "/l", "/s", "/o"),
        push_words(ORDER, "/l", largest=1),
        delete_words(ORDER, "/l"),
    ):
        assert not [word for word in words if "hidden" in word or "AKIA" in word]
        assert [word for word in words if word == source(ORDER)]
    assert "hidden" == environment(ORDER, BASE)["RCLONE_CONFIG_BUCKET_SECRET_ACCESS_KEY"]


def test_nothing_of_the_users_own_settings_counts() -> None:
    """Neither rclone's, nor AWS's where keys are given; and it is no process of the node's mark."""
    made = environment(ORDER, BASE)
    assert {"PATH"} == made.keys() & BASE.keys()
    assert "/dev/null" == made["RCLONE_CONFIG"]


def test_a_machine_with_a_role_of_its_own_needs_no_keys() -> None:
    """AWS's own way of looking for them is used."""
    made = environment(evolve(ORDER, access_key=None, secret_key=None), BASE)
    assert ("true", "mine") == (made["RCLONE_CONFIG_BUCKET_ENV_AUTH"], made["AWS_PROFILE"])
    assert "RCLONE_CONFIG_BUCKET_ACCESS_KEY_ID" not in made


@pytest.mark.parametrize(
    ("endpoint", "bucket", "path_style", "provider", "in_path"),
    [
        ("https://s3.example.org", "b-1", True, "Other", "true"),
        ("https://s3.example.org", "b-1", False, "Other", "false"),
        ("https://s3.example.org", "b.1", False, "Other", "true"),
        ("http://10.0.0.1:9000", "b-1", False, "Other", "true"),
        ("https://s3.eu-central-1.amazonaws.com", "b-1", False, "AWS", "false"),
        ("https://s3.eu-central-1.amazonaws.com", "b-1", True, "Other", "true"),
        ("https://a.r2.cloudflarestorage.com", "b-1", True, "Cloudflare", "true"),
        ("https://storage.googleapis.com", "b-1", False, "GCS", "false"),
        ("https://storage.googleapis.com", "b-1", True, "Other", "true"),
        ("https://storage.googleapis.com", "b.example.org", False, "Other", "true"),
    ],
)
def test_the_bucket_stands_where_the_storage_says(
    endpoint: str, bucket: str, path_style: bool, provider: str, in_path: str
) -> None:
    """In the path also where a host can have no name for it, and as no kind where rclone would not do it for that."""
    order = evolve(ORDER, endpoint=endpoint, bucket=bucket, path_style=path_style)
    made = environment(order, BASE)
    assert provider == made["RCLONE_CONFIG_BUCKET_PROVIDER"]
    assert in_path == made["RCLONE_CONFIG_BUCKET_FORCE_PATH_STYLE"]


def test_google_is_asked_as_google_by_paths_as_well() -> None:
    """It changes a header on its way, which must not be signed."""
    made = environment(evolve(ORDER, endpoint="https://storage.googleapis.com", path_style=True), BASE)
    assert "false" == made["RCLONE_CONFIG_BUCKET_SIGN_ACCEPT_ENCODING"]


def test_no_bucket_is_made() -> None:
    """One that is not there is an error."""
    assert "true" == environment(ORDER, BASE)["RCLONE_CONFIG_BUCKET_NO_CHECK_BUCKET"]


def test_a_read_only_volume_is_mounted_so() -> None:
    """And one that is written to is not."""
    assert "--read-only" in mount_words(ORDER, cache="/c", cache_bytes=5, version=(1, 60))
    writable = evolve(ORDER, read_only=False)
    assert "--read-only" not in mount_words(writable, cache="/c", cache_bytes=5, version=(1, 60))


def test_the_store_is_asked_what_it_has_where_an_answer_has_no_checksum() -> None:
    """As that to an object in parts."""
    assert "--s3-no-head" in push_words(ORDER, "/l", largest=WHOLE_UP_TO_MIB * 2**20 - 1)
    assert "--s3-no-head" not in push_words(ORDER, "/l", largest=WHOLE_UP_TO_MIB * 2**20)


def test_an_older_version_gets_no_option_that_it_does_not_know() -> None:
    """Distributions have 1.60."""
    option = "--vfs-read-chunk-streams"
    assert option not in mount_words(ORDER, cache="/c", cache_bytes=5, version=(1, 60, 1))
    assert option in mount_words(ORDER, cache="/c", cache_bytes=5, version=(1, 68, 0))
