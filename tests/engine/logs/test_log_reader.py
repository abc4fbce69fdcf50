"""A log is read in order while it is written, and what is damaged is passed over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.engine.logs.log_reader import LogReader
from skyward.plan.logs.log_format import VERSION, LogSegment, Stream, head, record


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that is this user's alone."""
    tmp_path.chmod(0o700)
    return tmp_path


def write(
    folder: Path, stream: Stream, numbers: Iterator[int] | list[int] | range, run: int = 1, segment: int = 1
) -> Path:
    """Append lines of these numbers to a segment."""
    one = LogSegment(stream, run, segment)
    path = folder / one.file
    fresh = not path.exists()
    with open(path, "a") as file:
        if fresh:
            file.write(head("3fa9", one))
        file.writelines(record(number, float(number), "line", {"text": str(number)}) for number in numbers)
    return path


def numbers(reader: LogReader) -> list[int]:
    return [found["n"] for found in reader.read()]


def test_streams_and_segments_are_merged_by_number(folder: Path) -> None:
    """And runs one after the other."""
    write(folder, "events", [1, 5, 9])
    write(folder, "output", [2, 3], segment=1)
    write(folder, "output", [6, 8], segment=2)
    write(folder, "calls", [4, 7])
    write(folder, "events", [1, 2], run=2)
    assert [*range(1, 10), 1, 2] == numbers(LogReader(folder))
    assert [1, 5, 9, 1, 2] == numbers(LogReader(folder, ("events",)))
    assert [1, 2] == [found["n"] for found in LogReader(folder).read(since_run=2)]


def test_only_what_is_new_is_read_again(folder: Path) -> None:
    """Over the end of a segment as well."""
    reader = LogReader(folder)
    write(folder, "output", [1, 2])
    assert [1, 2] == numbers(reader)
    assert [] == numbers(reader)
    write(folder, "output", [3])
    write(folder, "output", [4], segment=2)
    write(folder, "output", [5], run=2)
    assert [3, 4, 5] == numbers(reader)


def test_a_line_that_is_being_written_is_awaited(folder: Path) -> None:
    """And one that was cut off for good is passed over."""
    path = write(folder, "output", [1])
    whole = record(2, 2.0, "line", {"text": "two"})
    with open(path, "a") as file:
        file.write(whole[:10])
    reader = LogReader(folder)
    assert [1] == numbers(reader)
    with open(path, "a") as file:
        file.write(whole[10:])
    assert [2] == numbers(reader)
    assert 0 == reader.unreadable


def test_a_damaged_line_is_counted(folder: Path) -> None:
    """What comes after it is read."""
    path = write(folder, "output", [1])
    with open(path, "ab") as file:
        file.write(b"\x00\xff garbage\n")
    write(folder, "output", [2])
    reader = LogReader(folder)
    assert [1, 2] == numbers(reader)
    assert 1 == reader.unreadable


def test_a_file_of_a_newer_version_is_named_and_passed_over(folder: Path) -> None:
    """Once, however often it is looked at."""
    write(folder, "events", [1])
    newer = folder / LogSegment("output", 1, 1).file
    newer.write_text(f'{{"skyward_log":{VERSION + 1}}}\n' + record(2, 2.0, "line", {}))
    newer.with_name(LogSegment("calls", 1, 1).file).write_text("no head at all\n")
    said: list[str] = []
    reader = LogReader(folder, complain=said.append)
    assert [1] == numbers(reader)
    with open(newer, "a") as file:
        file.write(record(3, 3.0, "line", {}))
    assert [] == numbers(reader)
    assert 2 == len(said)
    assert any(f"output.001.000001.jsonl is of version {VERSION + 1}" in sentence for sentence in said)


def test_segments_that_were_dropped_are_skipped(folder: Path) -> None:
    """Also while it is read."""
    first = write(folder, "output", [1])
    reader = LogReader(folder)
    assert [1] == numbers(reader)
    first.unlink()
    write(folder, "output", [9], segment=5)
    assert [9] == numbers(reader)


def test_a_log_is_followed_to_its_end(folder: Path) -> None:
    """What was written just before the end is read."""
    write(folder, "output", [1])
    ends = iter([False, False, True])
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        write(folder, "output", [1 + len(waits)])

    assert [1, 2, 3] == [found["n"] for found in LogReader(folder).follow(lambda: next(ends), wait)]


def test_without_a_folder_there_is_nothing(tmp_path: Path) -> None:
    """A pool may have been removed since it was listed."""
    assert [] == numbers(LogReader(tmp_path / "gone"))


def test_a_long_log_is_read_in_pieces(folder: Path) -> None:
    """Lines that cross them are whole."""
    write(folder, "output", range(1, 20_001))
    assert list(range(1, 20_001)) == numbers(LogReader(folder))
