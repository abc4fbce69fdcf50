"""What cannot be is refused with what would be right, before anything is sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyward.errors import ConfigError
from skyward_storage.given import (
    bucket_name,
    endpoint_url,
    key_prefix,
    object_key,
    paths_below,
    source_path,
    target_path,
)


@pytest.mark.parametrize("name", ["my-bucket", "my.bucket.1", "Legacy_Bucket", "arn:aws:s3:us-east-1:1:accesspoint/a"])
def test_buckets(name: str) -> None:
    """Names of today, of earlier days, and access points."""
    assert name == bucket_name(name)


@pytest.mark.parametrize("name", ["", "ab", "a b c", "a..b", "-abc", "abc-", "a/b", "bucket\n", "x" * 256, None, 3])
def test_what_is_no_bucket(name: object) -> None:
    """Each is refused."""
    with pytest.raises(ConfigError, match="bucket must be"):
        bucket_name(name)


@pytest.mark.parametrize("key", ["", "a/..", "./a", "..", "a\0b", "\ud800", "k" * 1025, "ü" * 513, None, 3, b"k"])
def test_what_is_no_key(key: object) -> None:
    """Each is refused."""
    with pytest.raises(ConfigError, match="key must"):
        object_key(key)


def test_keys_may_have_dots_in_their_names() -> None:
    """Only whole names of dots are refused."""
    assert "a..b/.hidden/c..." == object_key("a..b/.hidden/c...")
    assert "" == key_prefix("")


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("s3.example.org", "Write https://s3.example.org"),
        ("ftp://s3.example.org", "must begin with https://"),
        ("https://me:hidden@s3.example.org", "no user and no password"),
        ("https://", "must begin with|must be an address"),
        ("https://s3.example.org/?x=1", "must be an address"),
        ("", "must be the address"),
        (None, "must be the address"),
    ],
)
def test_what_is_no_endpoint(endpoint: object, said: str) -> None:
    """And no password is shown."""
    with pytest.raises(ConfigError, match=said) as caught:
        endpoint_url(endpoint)
    assert "hidden" not in str(caught.value)


def test_local_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is not there is named with where paths begin."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=rf"'none' is not there\. Paths begin at {tmp_path}"):
        source_path("none")
    for wrong in ("", None, 3, "a\0b", b"a"):
        with pytest.raises(ConfigError, match="local_path must be"):
            source_path(wrong)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="must be a folder"):
        target_path("file", "prefix/")


def test_a_file_and_a_folder_of_one_name_are_refused() -> None:
    """A file system has one of the two."""
    with pytest.raises(ConfigError, match="'p/a' cannot be a file"):
        paths_below("p/", ["p/a", "p/a/b"])
