"""Large first writes go into huge pages where the kernel has them at hand, and are whole where it has not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from skyward.link import first_write, huge_pages
from skyward.link.address import copy_to
from skyward.link.first_write import WORTH_IT, write_first
from skyward.link.huge_pages import HUGE, make_huge, mapped_for_huge_pages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files in memory without a name")

SIZE = 4 * HUGE


@pytest.fixture
def fd() -> Iterator[int]:
    fd = os.memfd_create("test", os.MFD_CLOEXEC)
    yield fd
    os.close(fd)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the kernel searches on this machine."""
    monkeypatch.setattr(huge_pages, "_SLOWEST_S", 1.0)


@pytest.mark.usefixtures("patient")
def test_what_is_written_there_is_in_the_file(fd: int) -> None:
    """And what is not, is zero."""
    os.ftruncate(fd, 2 * SIZE)
    content = os.urandom(HUGE)
    with mapped_for_huge_pages(fd, HUGE, HUGE + SIZE) as address:
        if not make_huge(fd, HUGE, HUGE + SIZE, address):
            pytest.skip("this kernel has no huge pages for files in memory")
        copy_to(memoryview(content), address)
    assert os.pread(fd, 2 * HUGE, HUGE) == content + bytes(HUGE)


def test_the_range_is_mapped_where_huge_pages_may_lie(fd: int) -> None:
    """Wherever in the file it begins."""
    os.ftruncate(fd, SIZE)
    for start in (0, HUGE):
        with mapped_for_huge_pages(fd, start, SIZE) as address:
            assert address % HUGE == 0


def test_no_mapping_is_left(fd: int) -> None:
    """Also where the file cannot be mapped."""

    def mapped() -> int:
        with open("/proc/self/maps") as maps:
            return sum("memfd:test" in line for line in maps)

    os.ftruncate(fd, SIZE)
    with mapped_for_huge_pages(fd, 0, SIZE):
        assert mapped() == 1
    with pytest.raises(OSError, match="refused"), mapped_for_huge_pages(-1, 0, SIZE):
        pass
    assert mapped() == 0


@pytest.mark.parametrize("before", [0, 64, HUGE + 1], ids="{} bytes before it".format)
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 1000], ids="{} steps".format)
def test_content_is_whole_wherever_huge_pages_end(
    fd: int, before: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rest goes into small pages, also what was asked for last."""
    left = [True] * steps

    def some(fd: int, start: int, end: int, address: int) -> bool:
        return bool(left) and left.pop() and make_huge(fd, start, end, address)

    monkeypatch.setattr(first_write, "make_huge", some)
    parts = [os.urandom(before), os.urandom(2 * WORTH_IT + 4097), os.urandom(70)]
    write_first(fd, [memoryview(part) for part in parts])
    assert os.pread(fd, before + 2 * WORTH_IT + 5000, 0) == b"".join(parts)


@pytest.mark.parametrize(
    ("name", "value"),
    [("_COLLAPSE", 9999), ("_SLOWEST_S", 0.0), ("_SHARED_FIXED", 0x7FF)],
    ids=["it knows no such advice", "it takes long", "it maps nothing"],
)
def test_a_kernel_that_has_none_is_asked_once(
    fd: int, name: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the content is whole."""
    asked = []

    def counted(*wanted: int) -> bool:
        asked.append(wanted)
        return make_huge(*wanted)

    monkeypatch.setattr(huge_pages, name, value)
    monkeypatch.setattr(first_write, "make_huge", counted)
    content = os.urandom(WORTH_IT)
    write_first(fd, [memoryview(content)])
    assert os.pread(fd, WORTH_IT + 1, 0) == content
    assert len(asked) <= 1
