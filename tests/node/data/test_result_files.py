"""Files of results hold all that is said to be on the disk, and nothing that is half there, whenever the node dies."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, strategies as st

from skyward.link.frames import Kind, encode
from skyward.link.messages import CALL, RESULT, Status
from skyward.link.stored import StoredParser
from skyward.node.data.result_files import write_result, write_results


def _frame(call: int, size: int) -> bytes:
    return encode(Kind.RESULT, RESULT.pack(call, Status.OK, 0.5, 0.0) + bytes(size))


def _calls(*contents: bytes) -> list[int]:
    """Read what a client fetches: files one behind the other, in the order of their names."""
    found = StoredParser(1 << 30).feed(b"".join(contents))
    return [CALL.unpack_from(stored.frame.body)[0] for stored in found]


class Crashes:
    """
    Write files, and tell what a disk may hold after a crash at any moment of that.

    Before its content was synced, a file that has its name may have any part of it; a name lasts from its own sync on.
    """

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: list[dict[str, bytes]] = []
        self.lasting: set[str] = set()
        self._directory = directory
        self._synced: dict[int, int] = {}
        self._random = random.Random(1)
        for name in ("fsync", "rename", "unlink"):
            monkeypatch.setattr(os, name, self._watched(name, getattr(os, name)))

    def _watched(self, name: str, do: Callable[..., None]) -> Callable[..., None]:
        def watched(*args: int | str) -> None:
            self.look()
            do(*args)
            if name == "fsync":
                found = os.fstat(int(args[0]))
                self._synced[found.st_ino] = found.st_size
                if found.st_ino == self._directory.stat().st_ino:
                    self.lasting = set(os.listdir(self._directory))
            self.look()

        return watched

    def look(self) -> None:
        """Take note of what may be left now."""
        for also_new in (True, False):
            left = {}
            for path in sorted(self._directory.iterdir()):
                content = path.read_bytes()
                if self._synced.get(path.stat().st_ino) != len(content):
                    content = content[: self._random.randrange(len(content) + 1)]
                if also_new or path.name in self.lasting:
                    left[path.name] = content
            self.left.append(left)


def test_crash_leaves_whole_files_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And all of those that were reported."""
    crashes, reported = Crashes(tmp_path, monkeypatch), set[int]()
    for first in range(0, 30, 10):
        together = range(first, first + 9)
        assert write_results(str(tmp_path / f"{first}-9"), [_frame(call, 100) for call in together], lambda: True)
        reported |= {*together}
        crashes.look()
        crashes.left, before = [], crashes.left
        assert write_result(str(tmp_path / f"{first + 9}"), _frame(first + 9, 50_000), (), (), lambda: True) == []
        after, crashes.left = crashes.left, []
        for states, must in ((before, reported - {*together}), (after, reported)):
            assert len(states) >= 8
            for left in states:
                found = _calls(*(content for name, content in left.items() if not name.startswith(".")))
                assert len(found) == len(set(found))
                assert must <= {*found} <= {*range(first + 10)}
        reported.add(first + 9)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=6), st.data())
def test_file_that_was_torn_is_read_up_to_there(sizes: list[int], data: st.DataObject) -> None:
    """By a disk that lies about its syncs: whole results before that, and nothing else."""
    ends, content = [], b""
    with TemporaryDirectory() as directory:
        for count in range(1, len(sizes) + 1):
            path = Path(directory, str(count))
            assert write_results(str(path), [_frame(*one) for one in enumerate(sizes[:count])], lambda: True)
            content = path.read_bytes()
            ends.append(len(content))
    cut = data.draw(st.integers(0, len(content)))
    assert _calls(content[:cut]) == [*range(sum(end <= cut for end in ends))]


@pytest.mark.parametrize("fails", ["fsync", "rename"])
def test_what_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str) -> None:
    """A file that may not last is no file."""

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, fails, full)
    with pytest.raises(OSError, match="no space"):
        write_results(str(tmp_path / "1-2"), [_frame(1, 10), _frame(2, 10)], lambda: True)
    with pytest.raises(OSError, match="no space"):
        write_result(str(tmp_path / "3"), _frame(3, 10), (), (), lambda: True)
    assert [*tmp_path.iterdir()] == []


def test_what_is_not_to_go_on_leaves_nothing(tmp_path: Path) -> None:
    """It says so, too."""
    assert not write_results(str(tmp_path / "1-1"), [_frame(1, 10)], lambda: False)
    assert write_result(str(tmp_path / "2"), _frame(2, 10), (), (), lambda: False) is None
    assert [*tmp_path.iterdir()] == []


_WRITER = textwrap.dedent(
    """
    import sys
    from skyward.link.frames import Kind, encode
    from skyward.link.messages import RESULT
    from skyward.node.data.result_files import write_results

    for first in range(0, 1_000_000, 50):
        frames = [encode(Kind.RESULT, RESULT.pack(call, 0, 0.5, 0.0) + bytes(200)) for call in range(first, first + 50)]
        write_results(f"{sys.argv[1]}/{first:07d}-50", frames, lambda: True)
        print(first, flush=True)
    """
)


@pytest.mark.parametrize("after", [1, 7, 30])
def test_process_that_is_killed_leaves_what_it_reported(tmp_path: Path, after: int) -> None:
    """At whatever point it was."""
    writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    with writer:
        for _ in range(after):
            writer.stdout.readline()
        writer.kill()
        told = writer.stdout.read().splitlines()
    found = _calls(*(path.read_bytes() for path in sorted(tmp_path.iterdir()) if not path.name.startswith(".")))
    assert len(found) % 50 == 0
    assert found == [*range(len(found))]
    assert len(found) >= 50 * (after + len(told))
