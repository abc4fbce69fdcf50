"""`consistency="eventual"`: what is seen when, and where errors come out."""

from __future__ import annotations

import time

import pytest

from skyward.collections import write_behind
from skyward.collections.named_collections import Collections
from skyward.errors import SkywardError, StoreLostError, UsageError
from tests.collections.store_server import Opener, StoreServer, address_of


def within(seconds: float, holds: object) -> float:
    """Wait until something holds, and return after how long it did."""
    started = time.monotonic()
    while not holds():  # type: ignore[operator]
        assert time.monotonic() - started < seconds
        time.sleep(0.002)
    return time.monotonic() - started


def test_own_writes_are_seen_at_once_and_by_others_soon(opened: Opener) -> None:
    """A write is in the store within 50 ms; on a busy machine within a second."""
    one, other = opened("one").dict("d", consistency="eventual"), opened("other").dict("d")
    one["k"] = 1
    assert 1 == one["k"]
    within(1, lambda: "k" in other)
    assert write_behind.GATHER_S < 0.05


def test_reads_are_at_most_a_second_old(opened: Opener) -> None:
    """What another process writes is seen when what is known is a second old, not at once."""
    one, other = opened("one"), opened("other")
    shared = one.dict("d", consistency="eventual")
    counter = one.counter("c", consistency="eventual")
    elements = one.set("s", consistency="eventual")
    assert (None, 0, False) == (shared.get("k"), counter.value, 1 in elements)
    other.dict("d")["k"] = 1
    other.counter("c").increment(5)
    other.set("s").add(1)
    assert (None, 0, False) == (shared.get("k"), counter.value, 1 in elements)
    within(write_behind.STALE_S + 1, lambda: (1, 5, True) == (shared.get("k"), counter.value, 1 in elements))


def test_no_addition_is_lost(opened: Opener) -> None:
    """Counters of several holders add up, and each sees its own additions at once."""
    holders = [opened(f"holder {number}") for number in range(3)]
    counters = [holder.counter("c", consistency="eventual") for holder in holders]
    for number in range(1, 201):
        for counter in counters:
            assert number <= counter.increment()
    for holder in holders:
        holder.finish(True)
    assert 600 == opened("last").counter("c").value


def test_writes_keep_their_order(opened: Opener) -> None:
    """The last of many writes to a key is what is stored."""
    one = opened("one")
    shared = one.dict("d", consistency="eventual")
    for number in range(5000):
        shared["k"] = number
    one.finish(True)
    assert 4999 == opened("other").dict("d")["k"]


def test_everything_is_written_when_a_task_ends(opened: Opener) -> None:
    """`finish` waits for it."""
    one = opened("one")
    one.set("s", consistency="eventual").update(range(3000))
    one.finish(True)
    assert 3000 == len(opened("other").set("s"))


def test_what_the_store_has_to_decide_is_decided_there(opened: Opener) -> None:
    """`pop`, `setdefault`, `len`, iteration and `once=` are not answered from memory."""
    one, other = opened("one"), opened("other")
    shared = one.dict("d", consistency="eventual")
    assert shared.get("k") is None
    other.dict("d")["k"] = 1
    assert 1 == shared.setdefault("k", 2)
    other.dict("d")["k"] = 3
    assert (1, [("k", 3)]) == (len(shared), shared.items())
    assert 3 == shared.pop("k")
    counter = one.counter("c", consistency="eventual")
    other.counter("c").increment(once="x")
    assert 1 == counter.increment(once="x") == counter.value


def test_an_error_of_a_write_comes_out_at_the_next_operation(collections: Collections) -> None:
    """A background write that the store refuses is not passed over."""
    counter = collections.counter("c", consistency="eventual")
    counter.reset(2**63 - 1)
    counter.increment()
    with pytest.raises(UsageError, match=r"between -2\*\*63"):
        within(5, lambda: counter.value > 2**63)
    counter.reset()
    assert 0 == counter.value


def test_an_error_of_a_write_comes_out_at_the_end(own_store: StoreServer) -> None:
    """Where there is no next operation, `finish` raises it."""
    collections = Collections(lambda: address_of(own_store), patience=0.2)
    collections.dict("d", consistency="eventual")["k"] = 1
    own_store.end()
    with pytest.raises(StoreLostError, match="cannot be reached"):
        collections.finish(True)


def test_another_consistency_is_refused(collections: Collections) -> None:
    """There are two."""
    with pytest.raises(SkywardError, match='is "strong" or "eventual", not \'weak\''):
        collections.dict("d", consistency="weak")  # type: ignore[arg-type]
