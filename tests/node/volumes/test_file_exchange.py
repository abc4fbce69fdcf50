"""A file is exchanged for what came from a bucket, and nothing that the node wrote is lost by that."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest
from attrs import frozen

from skyward.node.volumes import file_exchange
from skyward.node.volumes.changes import FileState
from skyward.node.volumes.file_exchange import Lease, added, exchanged, is_idle
from tests.waiting import until

NEEDS_LEASES = pytest.mark.skipif(sys.platform != "linux", reason="needs leases of files")


@frozen
class Volume:
    """A folder with a file, and what came for it."""

    folder: Path
    arrived: Path
    aside: Path

    @property
    def file(self) -> Path:
        """Return the file."""
        return self.folder / "a"

    def exchange(self, expected: FileState) -> bool:
        """Exchange the file for what arrived."""
        return exchanged(str(self.file), expected, self.aside, self.arrived)


def state(path: Path) -> FileState:
    """Return the state of a file."""
    return FileState.of(path.lstat())


@pytest.fixture
def volume(tmp_path: Path) -> Volume:
    """Return a volume."""
    made = Volume(tmp_path / "volume", tmp_path / "arrived", tmp_path / "aside")
    made.folder.mkdir()
    made.file.write_text("old")
    made.arrived.write_text("new")
    return made


@pytest.mark.parametrize("at_once", [True, False])
def test_a_file_is_exchanged_under_its_readers(volume: Volume, monkeypatch: pytest.MonkeyPatch, at_once: bool) -> None:
    """They go on with what they opened; also where a system cannot swap two names at one moment."""
    if not at_once:
        monkeypatch.setattr(file_exchange, "_swapped", lambda *_: False)
    with volume.file.open() as reader:
        assert volume.exchange(state(volume.file))
        assert ("old", "new") == (reader.read(), volume.file.read_text())


def test_where_there_are_no_leases_size_and_time_say_what_changed(
    volume: Volume, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file as it was is exchanged, another is not."""
    monkeypatch.setattr(file_exchange, "_leased", lambda _: Lease.UNKNOWN)
    before = state(volume.file)
    volume.file.write_text("mine")
    assert not volume.exchange(before)
    assert volume.exchange(state(volume.file))
    assert "new" == volume.file.read_text()


def test_a_file_is_removed(volume: Volume) -> None:
    """And only that."""
    assert exchanged(str(volume.file), state(volume.file), volume.aside, None)
    assert [] == os.listdir(volume.folder)


def test_a_file_that_the_node_changed_stays(volume: Volume) -> None:
    """Written to, replaced by another, or removed."""
    before = state(volume.file)
    volume.file.write_text("mine")
    assert not volume.exchange(before)
    assert "mine" == volume.file.read_text()
    volume.file.unlink()
    assert not volume.exchange(before)
    assert [] == os.listdir(volume.folder)


@NEEDS_LEASES
@pytest.mark.parametrize("mode", ["r+", "a"])
def test_a_file_that_is_open_for_writing_stays(volume: Volume, mode: str) -> None:
    """What is written later would be in a file without a name."""
    with volume.file.open(mode) as writer:
        assert not is_idle(str(volume.file))
        assert not volume.exchange(state(volume.file))
        writer.seek(0, os.SEEK_END)
        writer.write(" and mine")
    assert "old and mine" == volume.file.read_text()
    assert is_idle(str(volume.file))


@NEEDS_LEASES
@pytest.mark.parametrize("removed", [True, False])
def test_a_file_that_is_opened_for_writing_meanwhile_is_put_back(
    volume: Volume, monkeypatch: pytest.MonkeyPatch, removed: bool
) -> None:
    """The writer waits for that long, and writes to the file that has the name."""

    def write() -> None:
        with volume.file.open("a") as file:
            file.write(" and mine")

    writer, held = threading.Thread(target=write), file_exchange._claimed

    def claimed_by_then(descriptor: int) -> bool:
        return bool(until(lambda: held(descriptor)))

    leased = file_exchange._leased

    def opened_after(descriptor: int) -> Lease:
        done = leased(descriptor)
        writer.start()
        until(lambda: held(descriptor))
        return done

    monkeypatch.setattr(file_exchange, "_leased", opened_after)
    monkeypatch.setattr(file_exchange, "_claimed", claimed_by_then)
    arrived = None if removed else volume.arrived
    assert not exchanged(str(volume.file), state(volume.file), volume.aside, arrived)
    writer.join(20.0)
    assert "old and mine" == volume.file.read_text()


def test_a_file_that_takes_the_name_meanwhile_stays(volume: Volume, monkeypatch: pytest.MonkeyPatch) -> None:
    """As programs save: beside it, and then by a rename."""
    before, swapped = state(volume.file), file_exchange._swapped

    def saved_before(one: Path, other: str) -> bool:
        if volume.file.read_text() == "old":
            (volume.folder / "a.new").write_text("saved")
            os.replace(volume.folder / "a.new", volume.file)
        return swapped(one, other)

    monkeypatch.setattr(file_exchange, "_swapped", saved_before)
    assert not volume.exchange(before)
    assert "saved" == volume.file.read_text()


def test_a_file_is_added(volume: Volume) -> None:
    """With the folders above it."""
    assert added(str(volume.folder), "b/c/d", volume.arrived)
    assert "new" == (volume.folder / "b" / "c" / "d").read_text()


def test_what_the_node_put_there_stays(volume: Volume, tmp_path: Path) -> None:
    """A file, a link, or a link to a folder, which would lead out of the volume."""
    assert not added(str(volume.folder), "a", volume.arrived)
    (volume.folder / "link").symlink_to(tmp_path)
    assert not added(str(volume.folder), "link", volume.arrived)
    with pytest.raises(NotADirectoryError, match="a link leads to another folder"):
        added(str(volume.folder), "link/c", volume.arrived)
    assert ("old", False) == (volume.file.read_text(), (tmp_path / "c").exists())
