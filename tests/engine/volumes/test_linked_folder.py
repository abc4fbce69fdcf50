"""On this machine a folder stands for a store, by a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyward.engine.volumes.linked_folder import LinkedFolder
from skyward.errors import ConfigError, NoSuchBucketError
from skyward.model.spec.volumes import Volume


def test_a_link_leads_to_the_folder_and_is_removed(tmp_path: Path) -> None:
    """With the folders that were made for it."""
    (tmp_path / "store" / "my-data").mkdir(parents=True)
    mount = tmp_path / "a" / "b"
    link = LinkedFolder(Volume("my-data", str(mount), prefix="x", read_only=False, storage=tmp_path / "store"))
    link.open()
    assert (tmp_path / "store" / "my-data" / "x") == mount.resolve()
    link.close()
    assert not (tmp_path / "a").exists()


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """As a bucket would be."""
    with pytest.raises(NoSuchBucketError, match=r"There is no folder .*Make it"):
        LinkedFolder(Volume("my-data", str(tmp_path / "a"), storage=tmp_path)).open()


def test_a_mount_point_with_files_is_refused(tmp_path: Path) -> None:
    """They stay."""
    (tmp_path / "store" / "my-data").mkdir(parents=True)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "mine").write_text("mine")
    with pytest.raises(ConfigError, match="cannot be made on this machine: Directory not empty"):
        LinkedFolder(Volume("my-data", str(tmp_path / "a"), storage=tmp_path / "store")).open()
    assert "mine" == (tmp_path / "a" / "mine").read_text()
