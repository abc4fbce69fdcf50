"""Where the buckets are of a volume without storage: network volumes, over the S3 API of their data centre."""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError, CredentialsError
from skyward.plan.offers.cloud_disk import CloudDisk
from skyward_runpod.buckets import KEY, SECRET, bucket_storage

KEYS = {KEY: "user_x", SECRET: "rps_hidden"}
HERE = CloudDisk(id="agv6w2qcg7", name="data", place="EU-RO-1", shared=True)
THERE = CloudDisk(id="b2", name="more", place="US-KS-2", shared=True)


def test_a_network_volume_is_a_bucket_of_its_data_centre() -> None:
    """By its id, in the path; the keys show up in no text."""
    found = bucket_storage([HERE.id], [HERE], KEYS)
    assert ("https://s3api-eu-ro-1.runpod.io", "EU-RO-1", True) == (found.endpoint, found.region, found.path_style)
    assert ("user_x", "rps_hidden") == (found.access_key, found.secret_key)
    assert "hidden" not in repr(found)


@pytest.mark.parametrize(
    ("buckets", "volumes", "words"),
    [
        (["data"], [HERE], r"'data' \(agv6w2qcg7\) is called by its id. Write sky.Volume\(\"agv6w2qcg7\""),
        ([HERE.id, THERE.id], [HERE, THERE], "are in EU-RO-1 and US-KS-2, whose S3 APIs are not the same"),
    ],
)
def test_buckets_that_are_not_in_one_store_are_refused(
    buckets: list[str], volumes: list[CloudDisk], words: str
) -> None:
    """With what to write instead."""
    with pytest.raises(ConfigError, match=words):
        bucket_storage(buckets, volumes, KEYS)


def test_without_keys_the_error_says_which() -> None:
    """The key of the account does not open the S3 API."""
    with pytest.raises(CredentialsError, match=f"{KEY} and {SECRET} are not set. Make one in RunPod's console"):
        bucket_storage([HERE.id], [HERE], {})
