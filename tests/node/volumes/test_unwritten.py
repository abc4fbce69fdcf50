"""What is not written yet is read from the records of rclone's cache."""

from __future__ import annotations

import json
from pathlib import Path

from skyward.node.volumes.unwritten import unwritten


def test_files_that_are_not_written_are_listed(tmp_path: Path) -> None:
    """By their names in the volume."""
    folder = tmp_path / "vfsMeta" / "bucket" / "b-1" / "sets"
    (folder / "x").mkdir(parents=True)
    (folder / "a").write_text(json.dumps({"Size": 3, "Dirty": True}))
    (folder / "b").write_text(json.dumps({"Size": 3, "Dirty": False}))
    (folder / "x" / "c").write_text(json.dumps({"Dirty": True}))
    assert ["a", "x/c"] == unwritten(tmp_path, "b-1/sets/")


def test_a_record_that_is_being_written_counts(tmp_path: Path) -> None:
    """It is read again."""
    (tmp_path / "vfsMeta" / "bucket" / "b-1").mkdir(parents=True)
    (tmp_path / "vfsMeta" / "bucket" / "b-1" / "a").write_text('{"Size":')
    assert ["a"] == unwritten(tmp_path, "b-1/")


def test_without_a_cache_there_is_nothing(tmp_path: Path) -> None:
    """As before the first file."""
    assert [] == unwritten(tmp_path, "b-1/")
