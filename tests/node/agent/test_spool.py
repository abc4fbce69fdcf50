"""Records come out of a spool as they went in, except the oldest where there were too many."""

from __future__ import annotations

import os
import resource
from collections import deque
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from skyward.node.agent.spool import Spool, Taken

FILES, FILE_BYTES = 3, 200

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 300), st.integers(1, 9)),
        st.tuples(st.just("take"), st.integers(1, 500), st.just(0)),
    ),
    max_size=80,
)


class Model:
    """What a spool is to do, in a few lists."""

    def __init__(self) -> None:
        self.parts: deque[list[tuple[bytes, int]]] = deque()
        self.sizes: deque[int] = deque()
        self.lost = 0

    def append(self, record: bytes, weight: int) -> None:
        if not self.parts or self.sizes[-1] >= FILE_BYTES:
            while len(self.parts) >= FILES:
                self.lost += sum(weight for _, weight in self.parts.popleft())
                self.sizes.popleft()
            self.parts.append([])
            self.sizes.append(0)
        self.parts[-1].append((record, weight))
        self.sizes[-1] += len(record) + 8

    def take(self, most: int) -> Taken:
        lost, self.lost = self.lost, 0
        records = []
        while self.parts and most > 0:
            record, _ = self.parts[0].pop(0)
            most -= len(record)
            records.append(record)
            if not self.parts[0]:
                self.parts.popleft()
                self.sizes.popleft()
        return Taken(lost, records)


@given(STEPS)
@settings(max_examples=200, deadline=None)
def test_spool_is_like_its_model(tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]) -> None:
    """Every record comes out once and in order, or is counted as lost before the next one that comes out."""
    directory = tmp_path_factory.mktemp("spool")
    spool, model = Spool(str(directory), files=FILES, file_bytes=FILE_BYTES), Model()
    for number, (step, size, weight) in enumerate(steps):
        if step == "append":
            record = f"{number}:".encode() + bytes(size)
            spool.append(record, weight)
            model.append(record, weight)
        else:
            assert spool.take(size) == model.take(size)
        assert spool.waiting == bool(model.parts or model.lost)
        assert len(list(directory.iterdir())) == len(model.parts) <= FILES
    assert spool.take(1 << 30) == model.take(1 << 30)
    assert not spool.waiting
    spool.close()
    assert list(directory.iterdir()) == []


def test_full_spool_says_so_before_it_loses_anything(tmp_path: Path) -> None:
    """The next record would cost the oldest ones."""
    spool = Spool(str(tmp_path), files=2, file_bytes=100)
    kept = []
    while not spool.full:
        kept.append(bytes([len(kept)]) * 40)
        spool.append(kept[-1], 1)
    assert spool.take(1).records == kept[:1]
    assert spool.full
    spool.append(b"one too many", 1)
    taken = spool.take(1 << 20)
    assert taken.lost > 0
    assert taken.lost + len(taken.records) == len(kept)
    spool.close()


def test_disk_that_is_full_loses_the_new_and_keeps_the_old(tmp_path: Path) -> None:
    """A record that was written in part is not given out."""
    spool = Spool(str(tmp_path))
    spool.append(b"kept", 1)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, before[1]))
    try:
        spool.append(bytes(1000), 7)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.path.getsize(next(tmp_path.iterdir())) == 20
    spool.append(b"later", 1)
    assert spool.take(1 << 20) == Taken(7, [b"kept", b"later"])
    spool.close()
