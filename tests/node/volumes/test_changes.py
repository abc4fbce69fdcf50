"""What changed in a folder is found by size, time and number of its files."""

from __future__ import annotations

from pathlib import Path

from skyward.node.volumes.changes import Changes, FileState, compared, listed


def test_what_is_new_changed_or_gone_is_found(tmp_path: Path) -> None:
    """In folders below as well."""
    (tmp_path / "a").write_text("one")
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "d").write_text("two")
    before = listed(str(tmp_path))
    assert {"a", "b/c/d"} == set(before)
    (tmp_path / "a").write_text("other")
    (tmp_path / "b" / "c" / "d").unlink()
    (tmp_path / "e").write_text("new")
    assert Changes(["a", "e"], ["b/c/d"]) == compared(before, listed(str(tmp_path)))


def test_a_file_that_takes_the_place_of_another_is_changed(tmp_path: Path) -> None:
    """Even of the same size and time."""
    now = {"a": FileState(1, 5, 8)}
    assert Changes(["a"], []) == compared({"a": FileState(1, 5, 7)}, now)


def test_what_may_still_be_written_waits() -> None:
    """Until it has been as it is for a while."""
    now = {"a": FileState(1, 5, 1), "b": FileState(1, 9, 2)}
    assert Changes(["a"], []) == compared({}, now, settled=9)
    assert Changes(["a", "b"], []) == compared({}, now)


def test_links_are_left_out(tmp_path: Path) -> None:
    """A bucket has none."""
    (tmp_path / "link").symlink_to("/")
    assert {} == listed(str(tmp_path))
