"""The folder of a volume is made and removed, and one in use is refused."""

from __future__ import annotations

from pathlib import Path

from skyward.node.volumes.mount_point import MountPoint, mounted


def test_what_was_made_is_removed(tmp_path: Path) -> None:
    """And nothing else."""
    point = MountPoint(str(tmp_path / "a" / "b"))
    assert point.prepare() is None
    assert (tmp_path / "a" / "b").is_dir()
    point.remove()
    assert [] == list(tmp_path.iterdir())


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    """It is the user's."""
    (tmp_path / "a").mkdir()
    point = MountPoint(str(tmp_path / "a"))
    assert point.prepare() is None
    point.remove()
    assert (tmp_path / "a").is_dir()


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    """By the name of one."""
    (tmp_path / "file").write_text("mine")
    failure = MountPoint(str(tmp_path)).prepare()
    assert failure is not None
    assert ("ConfigError", True) == (failure.kind, "it has 'file' in it" in failure.message)


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """Nor is what is below it."""
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "x"):
        failure = MountPoint(str(path)).prepare()
        assert failure is not None
        assert "cannot be used" in failure.message


def test_what_is_mounted_is_known() -> None:
    """As the kernel lists it."""
    assert mounted("/proc")
    assert not mounted("/proc/self")


def test_what_is_mounted_is_in_use() -> None:
    """And not unmounted."""
    failure = MountPoint("/proc").prepare()
    assert failure is not None
    assert "Something is mounted at /proc (proc)." == failure.message
