"""A version in a folder is whole and durable, or was never there: whatever is killed, full, or saves at once."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time
from io import FileIO
from pathlib import Path

import numpy as np
import pytest

from skyward.node.data.checkpoint_file import read_version, write_version
from skyward.node.data.checkpoint_folder import ABANDONED, CheckpointFolder
from tests.full_disk import full_disk
from tests.seeds import seeds


@pytest.fixture
def folder(tmp_path: Path) -> CheckpointFolder:
    return CheckpointFolder(tmp_path / "checkpoints")


def save(folder: CheckpointFolder, obj: object, keep: int = 2, address: str = "a") -> int:
    with folder.writing(address) as part:
        write_version(obj, part.write)
        return folder.publish(address, part, keep)


def load(folder: CheckpointFolder, number: int, address: str = "a") -> object:
    with FileIO(folder.path(address, number)) as file:
        return read_version(file)


def names(folder: CheckpointFolder, address: str = "a") -> list[str]:
    return sorted(os.listdir(folder.root / address))


def test_the_last_ones_are_kept(folder: CheckpointFolder) -> None:
    """Numbers go up, and nothing else is left."""
    assert [1, 2, 3, 4] == [save(folder, step) for step in "abcd"]
    assert [3, 4] == folder.versions("a")
    assert ["00000003.checkpoint", "00000004.checkpoint"] == names(folder)
    assert ["c", "d"] == [load(folder, number) for number in (3, 4)]


def test_addresses_have_versions_of_their_own(folder: CheckpointFolder) -> None:
    """And an address that nothing was saved at has none."""
    save(folder, 1, address="a")
    save(folder, 2, address="b")
    assert ([1], [1], []) == (folder.versions("a"), folder.versions("b"), folder.versions("c"))


class Torn:
    """What cannot be pickled."""

    def __reduce__(self) -> str:
        raise AttributeError


def test_what_is_not_published_leaves_nothing(folder: CheckpointFolder) -> None:
    """Such as what fails in its middle."""
    save(folder, 1)
    with pytest.raises(AttributeError):
        save(folder, [np.zeros(1 << 20), Torn()])
    assert ["00000001.checkpoint"] == names(folder)


def test_deleting_leaves_nothing(folder: CheckpointFolder) -> None:
    """It may be done twice."""
    save(folder, 1)
    folder.delete("a")
    folder.delete("a")
    assert [] == os.listdir(folder.root)


def test_folders_above_are_not_made(tmp_path: Path) -> None:
    """Where nothing is mounted, nothing is filled."""
    with pytest.raises(FileNotFoundError):
        save(CheckpointFolder(tmp_path / "mount" / "checkpoints"), 1)


def test_a_full_disk_costs_no_version(folder: CheckpointFolder) -> None:
    """What was saved is still there, and nothing of the new one is."""
    save(folder, 1, keep=1)
    with full_disk(), pytest.raises(OSError, match="File too large") as caught:
        save(folder, np.zeros(1 << 20), keep=1)
    assert errno.EFBIG == caught.value.errno
    assert ["00000001.checkpoint"] == names(folder)
    assert 1 == load(folder, 1)


def test_a_number_without_a_version_is_passed_over(folder: CheckpointFolder) -> None:
    """A process died between taking the number and the rename: it counts for nothing, and goes with older ones."""
    save(folder, "one", keep=1)
    folder.path("a", 2).touch()
    assert [1] == folder.versions("a")
    assert 3 == save(folder, "three", keep=1)
    assert ["00000003.checkpoint"] == names(folder)


def test_two_that_save_at_once_both_have_a_version(folder: CheckpointFolder) -> None:
    """Each number is one's own; the version that was finished last is the newest."""
    ready = threading.Barrier(4)
    numbers: list[int] = []

    def run(who: int) -> None:
        ready.wait()
        numbers.extend(save(folder, (who, step), keep=1000) for step in range(10))

    threads = [threading.Thread(target=run, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [*range(1, 41)] == sorted(numbers) == folder.versions("a")
    assert {(who, step) for who in range(4) for step in range(10)} == {load(folder, number) for number in numbers}


def test_what_a_process_left_is_removed_later(folder: CheckpointFolder) -> None:
    """Not while it lives, and not while it may be on another machine that has just died."""
    save(folder, 1)
    dead, fresh = (folder.root / "a" / f".{name}.part" for name in ("0" * 16, "1" * 16))
    for path in (dead, fresh):
        path.write_bytes(b"half")
    old = time.time() - ABANDONED - 60
    os.utime(dead, (old, old))
    with folder.writing("a") as mine:
        os.utime(mine.path, (old, old))
        save(folder, 2)
        assert {mine.path.name, fresh.name} == {name for name in names(folder) if name.endswith("part")}


SAVER = """
import sys
from pathlib import Path
import numpy as np
from skyward.node.data.checkpoint_file import write_version
from skyward.node.data.checkpoint_folder import CheckpointFolder

folder, step = CheckpointFolder(Path(sys.argv[1])), int(sys.argv[2])
while True:
    with folder.writing("a") as part:
        write_version({"step": step, "numbers": np.full(400_000, step)}, part.write)
        number = folder.publish("a", part, keep=2)
    # One write, also where Python writes without a buffer: what is read is a whole line.
    sys.stdout.write(f"{number} {step}\\n")
    sys.stdout.flush()
    step += 1
"""


@pytest.mark.parametrize("seed", seeds("killed savers", 2))
def test_whatever_moment_a_process_is_killed_at_a_whole_version_is_there(folder: CheckpointFolder, seed: int) -> None:
    """The one that it said was saved last, or the next: no file that counts is torn."""
    drawing = random.Random(seed)
    step = 0
    for _ in range(12):
        with subprocess.Popen(
            [sys.executable, "-c", SAVER, str(folder.root), str(step)], stdout=subprocess.PIPE, text=True
        ) as saver:
            assert saver.stdout is not None
            said = saver.stdout.readline()
            time.sleep(drawing.random() * 0.02)
            saver.send_signal(signal.SIGKILL)
            said = (saver.stdout.read().splitlines() or [said])[-1]
        number, saved = map(int, said.split())
        newest = folder.versions("a")[-1]
        assert number <= newest <= number + 1
        for version in folder.versions("a"):
            found = load(folder, version)
            assert isinstance(found, dict)
            assert (found["numbers"] == found["step"]).all()
        found = load(folder, newest)
        assert isinstance(found, dict)
        assert found["step"] == saved + newest - number
        step = found["step"] + 1


def test_a_version_is_durable_before_it_is_seen(folder: CheckpointFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """File, then name, then folder; older ones go last."""
    save(folder, 1, keep=1)
    done: list[str] = []
    for name in ("fsync", "rename", "unlink"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (done.append(name), real(*args))[1])
    save(folder, 2, keep=1)
    assert ["fsync", "rename", "fsync", "unlink"] == done
