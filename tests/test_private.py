"""What is this user's alone, and what another user of the machine could change."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward import private
from skyward.errors import ConfigError
from tests.strangers import give_away

REFUSED = r"is not used, because .* (belongs to|can be written by other users)"
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")


@pytest.fixture(params=[0, 0o077, 0o277], ids=oct)
def _any_umask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    # The test's own directory is made before.
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    """Return the bits of a path's mode."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("_any_umask")
def test_what_is_made_is_the_users_alone(tmp_path: Path) -> None:
    """Also what was missing above it, whatever the umask."""
    assert tmp_path / "a" / "b" == private.directory(tmp_path / "a" / "b")
    entry = private.entry(tmp_path / "c", "d")
    os.close(private.opened(tmp_path / "file", os.O_WRONLY | os.O_CREAT))
    made = [tmp_path / "a", tmp_path / "a" / "b", tmp_path / "c", entry]
    assert [0o700] * 4 == [mode(path) for path in made]
    assert [0o600] * 2 == [mode(path) for path in (tmp_path / "file", tmp_path / "c" / private.MARK)]
    assert ".\nd\n" == (tmp_path / "c" / private.MARK).read_text()


def test_what_was_there_is_not_listed(tmp_path: Path) -> None:
    """It may be the user's own, and nothing of ours."""
    (tmp_path / "mine").mkdir()
    for name in ("mine", "ours", "ours"):
        private.entry(tmp_path, name)
    assert "ours\n" == (tmp_path / private.MARK).read_text()


def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    """And so is all that lies in it."""
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "inner").mkdir(0o700)
    give_away(planted)
    for path in (planted, planted / "inner", planted / "missing"):
        with pytest.raises(ConfigError, match=REFUSED):
            private.directory(path)
    assert not (planted / "missing").exists()


def test_a_directory_that_all_may_write_to_is_refused(tmp_path: Path) -> None:
    """The error says how it is mended, and what else may be done."""
    wide = tmp_path / "wide"
    wide.mkdir()
    wide.chmod(0o777)
    with pytest.raises(ConfigError, match=rf"{wide} is not used.*chmod go-w {wide}\. Take another\.") as caught:
        private.directory(wide, hint="Take another.")
    assert "because it can be written by other users" in caught.value.message
    wide.chmod(0o755)
    assert wide == private.directory(wide)


@root_only
def test_a_group_is_others_unless_it_is_the_users_own(tmp_path: Path) -> None:
    """Root's own group rules the machine anyway."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o770)
    assert shared == private.directory(shared)
    os.chown(shared, -1, 54321)
    with pytest.raises(ConfigError, match="can be written by other users"):
        private.directory(shared)


def test_above_it_the_sticky_bit_is_enough(tmp_path: Path) -> None:
    """In /tmp an entry is replaced by its owner only; without the bit by everybody."""
    above = tmp_path / "tmp"
    above.mkdir()
    above.chmod(0o1777)
    assert above / "own" == private.directory(above / "own")
    with pytest.raises(ConfigError, match="can be written"):
        private.directory(above)
    above.chmod(0o777)
    with pytest.raises(ConfigError, match=f"because {above} can be written by other users"):
        private.directory(above / "own")


def test_a_link_of_the_users_own_is_followed(tmp_path: Path) -> None:
    """To what is then looked at as well."""
    (tmp_path / "disk").mkdir(0o700)
    (tmp_path / "cache").symlink_to("disk")
    assert tmp_path / "cache" / "inner" == private.directory(tmp_path / "cache" / "inner")
    assert (tmp_path / "disk" / "inner").is_dir()
    (tmp_path / "disk").chmod(0o777)
    with pytest.raises(ConfigError, match=f"because {tmp_path}/disk can be written"):
        private.directory(tmp_path / "cache")


@root_only
def test_a_link_of_another_user_is_refused(tmp_path: Path) -> None:
    """It leads where he wants, and tomorrow elsewhere."""
    (tmp_path / "victim").mkdir(0o700)
    (tmp_path / "link").symlink_to("victim")
    give_away(tmp_path / "link")
    with pytest.raises(ConfigError, match=f"{tmp_path}/link.* belongs to user 54321"):
        private.directory(tmp_path / "link" / "new")
    assert [] == list((tmp_path / "victim").iterdir())


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    """The walk over links ends."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(ConfigError, match="leads in a circle"):
        private.directory(tmp_path / "a")


def test_a_file_in_its_place_is_no_directory(tmp_path: Path) -> None:
    """Neither at the end nor on the way."""
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file"):
        private.directory(tmp_path / "file")
    with pytest.raises(NotADirectoryError, match="file"):
        private.directory(tmp_path / "file" / "inner")


def test_a_file_is_opened_for_the_user_alone(tmp_path: Path) -> None:
    """One that others could read is closed to them; what is in it stays."""
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    with os.fdopen(private.opened(path, os.O_RDWR | os.O_CREAT), "r+") as file:
        assert "old" == file.read()
    assert 0o600 == mode(path)


def test_only_a_file_of_ones_own_is_opened(tmp_path: Path) -> None:
    """Neither through a link, nor a pipe without a reader, nor a file of another user."""
    (tmp_path / "target").touch()
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(OSError, match="symbolic") as caught:
        private.opened(tmp_path / "link", os.O_WRONLY)
    assert errno.ELOOP == caught.value.errno
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="is no file"):
        private.opened(tmp_path / "pipe", os.O_RDWR)


@root_only
def test_a_file_of_another_user_is_not_opened(tmp_path: Path) -> None:
    """He would read what is written there."""
    (tmp_path / "planted").touch()
    give_away(tmp_path / "planted")
    with pytest.raises(ConfigError, match="belongs to user 54321"):
        private.opened(tmp_path / "planted", os.O_WRONLY)


def test_a_file_is_replaced_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the user alone; a disk that is full leaves the one before, and nothing else."""
    path = tmp_path / "file"
    private.replace(path, b"one")
    private.replace(path, b"two")
    assert (b"two", 0o600) == (path.read_bytes(), mode(path))

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        private.replace(path, b"three")
    assert b"two" == path.read_bytes()
    assert [path] == [*tmp_path.iterdir()]


def test_a_program_that_others_could_change_is_not_run(tmp_path: Path) -> None:
    """Neither itself nor the directory it lies in."""
    program = tmp_path / "bin" / "uv"
    program.parent.mkdir()
    program.touch(0o755)
    assert program == private.program(program)
    give_away(program)
    with pytest.raises(ConfigError, match=REFUSED):
        private.program(program)
    with pytest.raises(FileNotFoundError):
        private.program(tmp_path / "bin" / "none")
    assert not (tmp_path / "bin" / "none").exists()


@pytest.mark.parametrize("system", ["/bin/sh", "/usr"])
def test_what_the_machines_owner_has_made_is_trusted(system: str) -> None:
    """A program of root's may be run by everybody."""
    assert private.program(system)


def test_only_ones_own_directory_is_removed(tmp_path: Path) -> None:
    """A link is not followed; what is not there is no error."""
    (tmp_path / "victim" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("victim")
    private.remove(tmp_path / "link")
    private.remove(tmp_path / "none")
    assert (tmp_path / "victim" / "inner").is_dir()
    private.remove(tmp_path / "victim")
    assert not (tmp_path / "victim").exists()
