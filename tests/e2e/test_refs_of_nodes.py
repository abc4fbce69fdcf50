"""Values that tasks put stay at their nodes, and go from there into later calls."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import skyward as sky
from skyward.engine.nodes import remote_puts
from skyward.link.frames import Kind, encode
from tests.waiting import until

MIB = 1 << 20


class Listed:
    """A class that the program lists."""

    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers


class Hostile:
    """What runs code when it is unpickled."""

    def __reduce__(self) -> Any:
        return os.getpid, ()


@sky.function
def made(value: Any) -> Any:
    """Put a value on the node."""
    return sky.put(value)


@sky.function
def ones(count: int) -> Any:
    """Put an array that is made on the node."""
    return sky.put(np.ones(count))


@sky.function
def several() -> dict[str, Any]:
    """Put more than one, one of them twice in the result."""
    first = sky.put(b"first" * 100_000)
    return {"first": first, "again": [first], "small": sky.put(1)}


@sky.function
def summed(array: Any, more: int = 0) -> float:
    """Add up."""
    return float(array.sum()) + more


@sky.function
def length(values: Any) -> int:
    """Count items."""
    return len(values["first"]) + len(values["again"][0])


@sky.function
def doubled(array: Any) -> Any:
    """Make the next of a chain."""
    return sky.put(array * 2)


@sky.function
def stream(count: int) -> Iterator[Any]:
    """Give Refs one by one."""
    for number in range(count):
        yield sky.put(np.full(1000, number))


@sky.function
def puts_and(how: str) -> int:
    """Put what goes nowhere."""
    ref = sky.put(np.ones(MIB))
    if how == "raises":
        raise ValueError(ref.nbytes)
    return 1


@sky.function
def remembered() -> Any:
    """Return what the first call put."""
    import sys

    if not hasattr(sys, "kept_by_a_test"):
        sys.kept_by_a_test = sky.put([7] * 100_000)  # type: ignore[attr-defined]
    return sys.kept_by_a_test


@sky.function
def put_without_memory() -> str:
    """Put more than there is room for."""
    from skyward.node.worker import put_in_task

    put_in_task.free_memory = lambda: 65 << 20
    try:
        sky.put(np.ones(MIB))
    except sky.RefError as error:
        return str(error)
    return ""


@sky.function
def agent() -> int:
    """Name the agent."""
    return os.getppid()


@sky.function
def kept_open() -> int:
    """Count the memory files of the agent, this process's parent."""
    found = 0
    for fd in Path(f"/proc/{os.getppid()}/fd").iterdir():
        try:
            found += "memfd:skyward" in os.readlink(fd)
        except OSError:
            continue
    return found


@pytest.fixture(scope="module", params=["code", "data"])
def pool(request: pytest.FixtureRequest) -> Iterator[sky.Compute]:
    """Two nodes, whose results are opened as code and as data."""
    with sky.Compute(nodes=2, console="silent", trust=request.param) as pool:
        yield pool


@pytest.mark.parametrize("value", [1, "text", {"a": [1, 2]}, b"x" * 300_000, list(range(200_000))])
def test_a_ref_of_a_node_becomes_its_value(pool: sky.Compute, value: Any) -> None:
    """Here, however often it is asked for."""
    ref = made(value) >> pool
    assert isinstance(ref, sky.Ref)
    assert [value] * 2 == [ref.get(), ref.get()]


def test_it_is_an_argument_of_later_calls_on_any_node(pool: sky.Compute) -> None:
    """On its own node, and on the other one."""
    ref = pool.run(ones(MIB), target=0)
    assert [MIB + 1.0, MIB + 1.0] == [pool.run(summed(ref, 1), target=node) for node in (0, 1)]
    assert [float(MIB)] * 2 == summed(ref) @ pool


def test_a_chain_of_calls_on_one_node(pool: sky.Compute) -> None:
    """Each takes what the one before put."""
    ref = pool.run(ones(MIB), target=1)
    for _ in range(3):
        ref = pool.run(doubled(ref), target=1)
    assert 8.0 * MIB == pool.run(summed(ref), target=1)
    assert ref._shown.kept.segment.fd == -1
    assert 8.0 * MIB == ref.get().sum()


def test_refs_inside_containers_and_the_same_one_twice(pool: sky.Compute) -> None:
    """The same Ref is one value."""
    found = several() >> pool
    assert found["first"] is found["again"][0]
    assert 1 == found["small"].get()
    assert 1_000_000 == length(found) >> pool


def test_items_of_a_stream_are_refs(pool: sky.Compute) -> None:
    """As results are."""
    refs = list(stream(5) >> pool)
    assert [0, 1, 2, 3, 4] == [int(ref.get()[0]) for ref in refs]


def test_a_node_lets_go_of_what_is_needed_no_more(pool: sky.Compute) -> None:
    """With the last reference here, or when the result was never opened, or the task returned nothing of it."""
    before = pool.run(kept_open(), target=0)
    refs = [pool.run(ones(MIB), target=0) for _ in range(3)]
    assert before + 3 <= pool.run(kept_open(), target=0)
    unopened = pool.run_async(ones(MIB), target=0)
    del refs, unopened
    # A future and its call refer to each other.
    until(lambda: gc.collect() < 0 or pool.run(kept_open(), target=0) <= before)


def test_what_no_result_names_is_kept_by_no_node(pool: sky.Compute) -> None:
    """A task that puts and fails, or returns something else, leaves nothing."""
    before = pool.run(kept_open(), target=0)
    for how in ("returns", "raises"):
        try:
            assert pool.run(puts_and(how), target=0) == 1
        except ValueError:
            assert how == "raises"
    assert pool.run(kept_open(), target=0) <= before


def test_a_ref_of_an_earlier_call_is_returned_by_a_later_one(pool: sky.Compute) -> None:
    """Each result has it by itself: one that is let go takes it from no other."""
    first = pool.run(remembered(), target=0)
    second = pool.run(remembered(), target=0)
    del first
    gc.collect()
    assert [7] * 100_000 == second.get()


def test_a_ref_of_a_node_is_refused_by_another_pool(pool: sky.Compute) -> None:
    """As one that was put here."""
    ref = ones(10) >> pool
    with sky.Compute(console="silent") as other, pytest.raises(sky.RefError, match="another pool"):
        summed(ref) >> other


def test_a_ref_of_a_node_that_was_freed_or_whose_pool_is_closed() -> None:
    """One clear error."""
    with sky.Compute(console="silent") as pool:
        freed, kept = ones(10) >> pool, ones(10) >> pool
        freed.free()
        with pytest.raises(sky.RefError, match="freed"):
            freed.get()
        with pytest.raises(sky.RefError, match="freed"):
            summed(freed) >> pool
    with pytest.raises(sky.RefError, match="pool is closed"):
        kept.get()


def test_what_is_lost_with_its_node_is_one_clear_error() -> None:
    """But for what was fetched here, or is at another node."""
    with sky.Compute(nodes=2, console="silent") as pool:
        lost, fetched, elsewhere = (pool.run(ones(MIB), target=0) for _ in range(3))
        assert MIB == fetched.get().sum()
        assert pool._open is not None
        running = pool._open.running
        assert MIB == pool.run(summed(elsewhere), target=1)
        elsewhere_name = elsewhere._shown.kept.digest
        assert running._nodes[1].link.buffers.has(elsewhere_name)
        os.kill(pool.run(agent(), target=0), 9)
        until(lambda: lost._shown.kept.segment.lost)
        with pytest.raises(sky.RefError, match=r"node 0 .*Run the call again"):
            lost.get()
        with pytest.raises(sky.RefError, match=r"node 0 .*Run the call again"):
            summed(lost) >> pool
        assert MIB == fetched.get().sum()
        assert MIB == summed(fetched) >> pool
        assert MIB == elsewhere.get().sum()


def test_a_node_without_memory_says_so_in_the_task(pool: sky.Compute) -> None:
    """With figures, before it is killed for it."""
    assert "MiB are free" in pool.run(put_without_memory(), target=0)


@pytest.mark.parametrize("how", ["stalls", "has it no more", "sends another size"])
def test_a_node_that_does_not_send_what_it_promised(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is refused where it breaks the protocol, and the Ref is lost."""
    monkeypatch.setattr(remote_puts, "GIVES_WITHIN", 0.5)
    monkeypatch.setattr(remote_puts, "SLOWEST", 1 << 40)
    with sky.Compute(nodes=1, console="silent") as pool:
        ref = ones(MIB) >> pool
        absent, process = ref._shown.kept.segment, agent() >> pool
        if how == "stalls":
            os.kill(process, signal.SIGSTOP)
        elif how == "has it no more":
            pool._open.running._nodes[0].link._channel.send(encode(Kind.DROP, absent.name))  # type: ignore[union-attr]
        else:
            absent.size -= 64
        try:
            with pytest.raises(sky.RefError, match="node 0"):
                ref.get()
        finally:
            os.kill(process, signal.SIGCONT)


@sky.function
def put_hostile() -> Any:
    """Put what is no data."""
    return sky.put([Hostile()])


@sky.function
def put_listed() -> Any:
    """Put an object of a class that is listed."""
    return sky.put(Listed([1, 2]))


@sky.function
def numbers_of(value: Any) -> list[int]:
    """Use it."""
    return list(value.numbers)


def test_what_a_task_put_is_opened_as_results_are() -> None:
    """As data where nodes are trusted with data: here, and by tasks on other nodes."""
    with sky.Compute(nodes=2, console="silent", trust=sky.Data(Listed)) as pool:
        listed = pool.run(put_listed(), target=0)
        assert [1, 2] == listed.get().numbers
        assert [[1, 2]] * 2 == [pool.run(numbers_of(listed), target=node) for node in (0, 1)]
        hostile = pool.run(put_hostile(), target=0)
        with pytest.raises(sky.ResultError, match="getpid"):
            hostile.get()
        with pytest.raises(sky.SerializationError, match="getpid"):
            pool.run(numbers_of(hostile), target=1)
