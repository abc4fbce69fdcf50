"""Volumes are values, checked when they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from skyward.errors import ConfigError, UsageError
from skyward.model.spec.spec import Spec
from skyward.model.spec.volumes import Disk, S3Volume, Volume, volumes
from skyward.plan.config.request import request


@frozen
class Store:
    """Stand for a `sky.Storage`."""

    endpoint: str = "https://s3.example.org"
    access_key: str | None = "AKIA"
    secret_key: str | None = "hidden"


def test_a_volume_is_a_bucket_at_a_folder() -> None:
    """Read only, and mounted, unless something else is said."""
    volume = Volume("my-data", "/data")
    assert ("my-data", "/data", "", True, None, "mount") == (
        volume.bucket,
        volume.mount,
        volume.prefix,
        volume.read_only,
        volume.storage,
        volume.type,
    )


@pytest.mark.parametrize(("prefix", "held"), [("", ""), ("a", "a/"), ("a/b/", "a/b/"), ("/a", "a/")])
def test_a_prefix_is_a_folder(prefix: str, held: str) -> None:
    """However its slashes are written."""
    assert held == Volume("my-data", "/data", prefix=prefix).prefix


@pytest.mark.parametrize("prefix", ["a//b", "../b", "a/./b", "a\x07b", "/"])
def test_a_prefix_that_no_folder_can_have_is_refused(prefix: str) -> None:
    """It would be another one in the folder than in the bucket."""
    with pytest.raises(ConfigError, match="prefix must"):
        Volume("my-data", "/data", prefix=prefix)


def test_an_address_of_a_bucket_is_answered_with_its_name() -> None:
    """It is what other tools take."""
    with pytest.raises(ConfigError, match=r'not \'s3://my-data/train\'. Write bucket="my-data"'):
        Volume("s3://my-data/train", "/data")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"bucket": "x"}, "bucket must be the name of a bucket"),
        ({"bucket": ""}, "bucket must not be blank"),
        ({"mount": "/etc"}, "mount must not be '/etc'"),
        ({"read_only": 1}, "read_only must be True or False, not 1"),
        ({"type": "copy"}, 'type must be "mount" or "sync", not \'copy\''),
        ({"storage": "s3.example.org"}, "storage must be a sky.Storage or the absolute path of a folder"),
        ({"storage": 3}, "storage must be a sky.Storage or a folder, not int"),
        ({"storage": Store}, "storage must be a sky.Storage or a folder, not Store"),
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any], said: str) -> None:
    """When it is written, and not on a machine that is paid for."""
    with pytest.raises(ConfigError, match=said):
        Volume(**{"bucket": "my-data", "mount": "/data", **wrong})


def test_what_is_missing_is_named() -> None:
    """With what to write."""
    with pytest.raises(UsageError, match=r"sky\.Volume\('my-data'\) lacks mount\. Write sky\.Volume\(bucket="):
        Volume("my-data")  # type: ignore[call-arg]


def test_a_folder_may_stand_for_a_store() -> None:
    """As a path or as its address."""
    assert Path("/srv/buckets") == Volume("my-data", "/data", storage="file:///srv/buckets/").storage
    assert Path("/srv/buckets") == Volume("my-data", "/data", storage=Path("/srv/buckets")).storage


def test_no_repr_and_no_error_shows_a_key() -> None:
    """Of a store, and of an address with a password in it."""
    assert "hidden" not in repr(Volume("my-data", "/data", storage=Store()))
    with pytest.raises(ConfigError) as raised:
        Volume("my-data", "/data", storage="https://id:hidden@s3.example.org")
    assert "hidden" not in str(raised.value)


def test_the_older_spelling_is_the_same() -> None:
    """`mount_path` is `mount`."""
    older = S3Volume(mount_path="/checkpoints", bucket="my-bucket", prefix="models/", read_only=False)
    assert Volume("my-bucket", "/checkpoints", "models", read_only=False) == older


def test_a_disk_has_a_name_and_perhaps_a_folder() -> None:
    """The name may be its id."""
    assert ("vol-0abc", None) == (Disk("vol-0abc").name, Disk("vol-0abc").mount)
    assert "/data" == Disk("training", "/data/").mount
    with pytest.raises(ConfigError, match="mount must not be '/usr/x'"):
        Disk("training", mount="/usr/x")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("my-data", "volumes must be a list of volumes, not a str"),
        (None, "volumes must be a list of volumes, not None"),
        ([Volume], "the class Volume is none"),
        ([{"bucket": "b"}], "a dict is none"),
        ([Disk("a"), Disk("a", mount="/b")], "has the disk 'a' more than once"),
        ([Volume("aaa", "/d"), Disk("a", mount="/d")], "has the mount point /d for two volumes"),
        ([Volume("aaa", "/d/e"), Volume("bbb", "/d")], "has the mount point /d/e inside of /d"),
    ],
)
def test_a_list_that_cannot_be_is_refused(given: Any, said: str) -> None:
    """Each volume has a folder outside of the others."""
    with pytest.raises(ConfigError, match=said):
        volumes(given)


def test_a_spec_has_volumes_and_compute_takes_either_word() -> None:
    """One, or a list of them."""
    disk, bucket = Disk("training"), Volume("my-data", "/data")
    assert (disk, bucket) == Spec(volumes=[disk, bucket]).volumes
    assert (bucket,) == request((), {"volume": bucket}).specs[0].volumes
    assert (disk,) == request((), {"volumes": [disk]}).specs[0].volumes
    with pytest.raises(ConfigError, match=r"^volume must be a list of volumes, not a str"):
        request((), {"volume": "my-data"})


def test_a_name_that_is_too_short_says_what_a_name_is() -> None:
    """There is nothing in it that could be proposed."""
    with pytest.raises(ConfigError, match=r"not 'b'\. A name has 2 to 255 letters"):
        Volume("b", "/data")
