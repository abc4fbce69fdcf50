"""Objects of decorated classes on real nodes: made once in each worker, kept, made again or missed when it ended."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import skyward as sky


@sky.cls
class Counter:
    """Count in a worker, and write down when it is made."""

    def __init__(self, log: str, fail: str = "") -> None:
        with open(log, "a") as file:
            file.write("x")
        if fail and not Path(fail).exists():
            raise LookupError("no weights")
        self.count = 0

    @sky.function
    def add(self, by: int = 1) -> tuple[int, int]:
        self.count += by
        return sky.instance_info().node, self.count

    def each(self, upto: int) -> Any:
        for _ in range(upto):
            yield self.add.local()[1]

    async def later(self) -> int:
        return self.count

    @sky.function
    def fail(self) -> None:
        raise KeyError("gone")

    def crash(self) -> None:
        os._exit(3)


Lasting: Any = sky.cls(on_loss="raise")(Counter)


@sky.function
def through(counter: Any) -> int:
    """Use the object of this worker in another call."""
    return int(counter.add.local(10)[1])


def made(log: str) -> int:
    """Tell how often a constructor ran."""
    return os.path.getsize(log) if os.path.exists(log) else 0


@pytest.fixture
def log(tmp_path: Path) -> str:
    """Give the file in which constructors are counted."""
    return str(tmp_path / "log")


def test_it_is_made_once_in_each_worker(pool: sky.Pool, log: str) -> None:
    """With each operator, and reached from other calls too."""
    counter: Any = Counter(log)
    assert 0 == made(log)
    assert [(0, 1), (1, 1)] == counter.add() @ pool
    assert (0, 2) == pool.run(counter.add(), target=0)
    assert (1, 2) == (pool.run_async(counter.add(), target=1)).result()
    assert {3} == {count for _, count in (counter.add() & counter.add()) >> pool}
    assert [4, 5] == list(pool.run(counter.each(2), target=0))
    assert 5 == pool.run(counter.later(), target=0)
    assert [15, 13] == through(counter) @ pool
    assert 8 == len(pool.map(counter.add, range(8)))
    assert 2 == made(log)


def test_what_a_method_raises_is_told_as_what_a_function_raises(pool: sky.Pool, log: str) -> None:
    """Its traceback begins in the user's code."""
    with pytest.raises(KeyError, match="gone") as raised:
        Counter(log).fail() >> pool
    text = str(raised.value.__cause__)
    assert "in fail" in text
    assert "/skyward/" not in text
    assert raised.value.__notes__[0].startswith("raised by Counter.fail() on node")


def test_it_is_made_again_where_its_worker_ended(pool: sky.Pool, log: str) -> None:
    """There alone."""
    counter: Any = Counter(log)
    assert [(0, 2), (1, 2)] == counter.add(2) @ pool
    with pytest.raises(sky.WorkerDiedError, match=r"Counter\.crash\(\) on node 0"):
        pool.run(counter.crash(), target=0)
    assert [(0, 1), (1, 3)] == counter.add() @ pool
    assert 3 == made(log)


def test_it_is_missed_where_that_was_asked_for(pool: sky.Pool, log: str) -> None:
    """There alone, at each call, until a new one is made."""
    counter = Lasting(log)
    assert [(0, 1), (1, 1)] == counter.add() @ pool
    with pytest.raises(sky.WorkerDiedError):
        pool.run(counter.crash(), target=0)
    for _ in range(2):
        with pytest.raises(sky.StateLostError, match=r"on node 0 .* The Counter of this worker is gone") as lost:
            pool.run(counter.add(), target=0)
        assert ("Counter.add", 0) == (lost.value.function, lost.value.node)
    assert (1, 2) == pool.run(counter.add(), target=1)
    assert (0, 1) == pool.run(Lasting(log).add(), target=0)
    assert 3 == made(log)


def test_a_constructor_that_fails_says_which_and_where(pool: sky.Pool, log: str, tmp_path: Path) -> None:
    """It is what is raised; the next call tries again."""
    gate = tmp_path / "weights"
    counter: Any = Counter(log, fail=str(gate))
    with pytest.raises(LookupError, match="no weights") as raised:
        pool.run(counter.add(), target=1)
    notes = raised.value.__notes__
    assert "raised while Counter(...) was made on node 1; the next call tries again" == notes[0]
    assert notes[1].startswith("raised by Counter.add() on node 1")
    gate.touch()
    assert (1, 1) == pool.run(counter.add(), target=1)
    assert 2 == made(log)
