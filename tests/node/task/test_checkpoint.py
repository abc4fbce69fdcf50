"""What is saved is loaded, from each kind of place; what cannot be is said, and costs no version."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from skyward.errors import CheckpointError, SerializationError, UsageError
from skyward.node.task.checkpoint import Checkpoint, address_of_call, address_of_key
from skyward.node.task.checkpoint_places import CheckpointPlace, CheckpointStorage, InFolder, InStorage
from skyward.node.task.task_context import TaskContext
from tests.full_disk import full_disk


class Bucket:
    """A folder as storage has it: keys, and files that are whole."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def upload(self, path: str, key: str) -> None:
        target = self.root / key
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)

    def download(self, key: str, path: str) -> None:
        shutil.copy(self.root / key, path)

    def ls(self, prefix: str) -> list[str]:
        keys = [path.relative_to(self.root).as_posix() for path in self.root.rglob("*") if path.is_file()]
        return [key for key in keys if key.startswith(prefix)]

    def rm(self, key: str) -> None:
        (self.root / key).unlink(missing_ok=True)


class Refuses(Bucket):
    """Storage that has no room."""

    def upload(self, path: str, key: str) -> None:
        raise RuntimeError("QuotaExceeded: the bucket is full")


Make = Callable[..., Checkpoint]


@pytest.fixture(params=["folder", "storage"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Return what makes checkpoints at a kind of place."""
    place: CheckpointPlace = (
        InFolder(tmp_path / "kept") if request.param == "folder" else InStorage(Bucket(tmp_path / "kept"))
    )
    return lambda address="call-a1-7", keep=2: Checkpoint(address, place, keep)


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_the_default_is_loaded_until_something_was_saved(make: Make) -> None:
    """None is a value as any other."""
    saved = make()
    assert (None, "default") == (saved.load(), saved.load("default"))
    saved.save(None)
    assert saved.load("default") is None


def test_the_newest_is_loaded_and_the_last_ones_are_kept(make: Make) -> None:
    """By their numbers."""
    saved = make(keep=3)
    assert [1, 2, 3, 4, 5] == [saved.save({"step": step}) for step in range(5)]
    assert [3, 4, 5] == saved.versions()
    assert {"step": 4} == make().load()


def test_addresses_do_not_see_each_other(make: Make) -> None:
    """Even where one begins with the other."""
    make("call-a1-7").save(1)
    make("call-a1-77").save(2)
    assert (1, 2) == (make("call-a1-7").load(), make("call-a1-77").load())


def test_arrays_are_ones_own(make: Make) -> None:
    """Writing to what was loaded changes nothing that is kept."""
    saved = make()
    saved.save(np.zeros(1_000_000))
    saved.load()[:] = 1
    assert 0 == saved.load().sum()


def test_deleting_begins_again(make: Make, tmp_path: Path) -> None:
    """Nothing is left."""
    saved = make()
    saved.save(1)
    saved.delete()
    assert "default" == saved.load("default")
    assert [] == files(tmp_path)


def damage(path: Path) -> None:
    """Change a byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_a_damaged_version_is_passed_over(make: Make, tmp_path: Path) -> None:
    """With a warning that says which; the next one that is saved is the newest again."""
    saved = make(keep=3)
    for step in range(3):
        saved.save({"step": step, "numbers": np.arange(50_000)})
    damage(files(tmp_path)[-1])
    with pytest.warns(RuntimeWarning, match=r"call-a1-7 is damaged \(version 3: its checksums differ\), and version 2"):
        assert 1 == saved.load()["step"]
    saved.save({"step": 9})
    assert {"step": 9} == saved.load()


def test_where_all_are_damaged_that_is_said(make: Make, tmp_path: Path) -> None:
    """A default would begin from the start without a word."""
    saved = make()
    saved.save(np.arange(50_000))
    damage(files(tmp_path)[0])
    with pytest.raises(CheckpointError, match=r"is damaged: version 1: its checksums differ\. Call delete\(\)"):
        saved.load("default")


class Gone:
    """A class that is not there any more when it is to be loaded."""

    def __reduce__(self) -> Any:
        return _gone, ()


def _gone() -> None:
    raise ModuleNotFoundError("No module named 'gone'")


def test_a_whole_version_that_cannot_be_unpickled_is_said(make: Make) -> None:
    """An older one would not be better."""
    saved = make()
    saved.save(1)
    saved.save(Gone())
    with pytest.raises(CheckpointError, match=r"Version 2 .* is whole, and cannot be unpickled here: ModuleNotFound"):
        saved.load()


def test_what_cannot_be_pickled_costs_no_version(make: Make, tmp_path: Path) -> None:
    """And the error names the object to blame."""
    import threading

    saved = make()
    saved.save(1)
    with pytest.raises(SerializationError, match=r"lock"):
        saved.save({"numbers": np.arange(50_000), "inner": [threading.Lock()]})
    assert 1 == saved.load()
    assert 1 == len(files(tmp_path))


def test_a_full_disk_costs_no_version(tmp_path: Path) -> None:
    """Its number is in the error, and so is what to do."""
    saved = Checkpoint("call-a1-7", InFolder(tmp_path / "kept"), 1)
    saved.save(1)
    with (
        full_disk(),
        pytest.raises(CheckpointError, match=r"could not be saved in .*: File too large\..*Make room") as caught,
    ):
        saved.save(np.arange(1_000_000))
    assert errno.EFBIG == caught.value.errno
    assert "call-a1-7" == caught.value.address
    assert 1 == saved.load()
    assert 1 == len(files(tmp_path))


def test_storage_that_refuses_is_said(tmp_path: Path) -> None:
    """In its own words."""
    saved = Checkpoint("call-a1-7", InStorage(Refuses(tmp_path)), 1)
    with pytest.raises(CheckpointError, match=r"could not be saved .*QuotaExceeded: the bucket is full"):
        saved.save(1)


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """Where a mount is missing, for example."""
    saved = Checkpoint("call-a1-7", InFolder(tmp_path / "mount" / "kept"), 1)
    with pytest.raises(CheckpointError, match=r"could not be saved .*No such file or directory"):
        saved.save(1)
    assert saved.load() is None


def test_a_bucket_is_storage(tmp_path: Path) -> None:
    """Four methods are enough."""
    assert isinstance(Bucket(tmp_path), CheckpointStorage)
    assert not isinstance(tmp_path, CheckpointStorage)


def test_attempts_of_a_call_have_one_address() -> None:
    """Other calls, names and ranks have others."""

    def address(call: int, name: str = "", **members: Any) -> str:
        return address_of_call(TaskContext(call_id=call, facts={}, membership={"job_id": "a1", **members}), name)

    assert address(7) == address(7 | 1 << 48) == address(7 | 5 << 48)
    assert address(8, broadcast=6, node=1) == address(12, broadcast=6 | 2 << 48, node=1)
    others = [
        address(7),
        address(8),
        address(7, "a"),
        address(7, "b"),
        address(9, broadcast=8, node=0),
        address(9, broadcast=8, node=1),
        address(9, "a", broadcast=8, node=1),
        address_of_key("call-a1-7"),
    ]
    assert len(others) == len({*others})


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "a b", "x" * 101, "ä", 7, None])
def test_what_is_no_name_is_refused(name: Any) -> None:
    """Folders and keys are made of it."""
    with pytest.raises(UsageError, match="is no name for a checkpoint"):
        address_of_key(name)


def test_its_text_says_where_it_is(tmp_path: Path) -> None:
    """For logs and debuggers."""
    assert f"<checkpoint key-run in {tmp_path}>" == repr(Checkpoint("key-run", InFolder(tmp_path), 1))
