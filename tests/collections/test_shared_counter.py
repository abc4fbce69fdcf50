"""`sky.counter`."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from skyward.collections.named_collections import Collections
from skyward.errors import UsageError
from tests.collections.holder_process import holder_process, said
from tests.collections.store_server import Opener, StoreServer


def test_it_counts(collections: Collections) -> None:
    """Each operation returns what the number is then."""
    counter = collections.counter("c")
    assert 0 == counter.value
    assert 1 == counter.increment()
    assert 2**60 + 1 == counter.increment(2**60)
    assert 2**60 - 1 == counter.decrement(2) == int(counter)
    counter.reset()
    assert 0 == counter.value
    counter.reset(-5)
    assert -5 == counter.value


def test_no_number_is_returned_twice(collections: Collections) -> None:
    """Threads that count at once get each number once."""
    counter = collections.counter("c")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: counter.increment(), range(400)))
    assert list(range(1, 401)) == sorted(found)


def test_processes_count_together(store: StoreServer, collections: Collections) -> None:
    """No increment of any process is lost."""
    code = "for _ in range(500): collections.counter('c').increment()\nsay('done')"
    with ExitStack() as stack:
        found = [stack.enter_context(holder_process(store, f"p{number}", code)) for number in range(3)]
        assert ["done"] * 3 == [said(process) for process in found]
    assert 1500 == collections.counter("c").value


def test_a_task_that_is_tried_again_counts_once(opened: Opener) -> None:
    """`once=True` counts for the call, whichever of its attempts runs."""
    first, second = opened("attempt 1", "call 1"), opened("attempt 2", "call 1")
    assert 1 == first.counter("c").increment(once=True)
    assert 1 == second.counter("c").increment(once=True)
    assert 2 == opened("attempt 3", "call 2").counter("c").increment(once=True)
    assert 1 == first.counter("other").increment(once=True)


def test_what_is_counted_may_be_named(collections: Collections) -> None:
    """`once=` with a key counts once for the key, until the counter is reset."""
    counter = collections.counter("c")
    assert 1 == counter.increment(once="epoch 1")
    assert 1 == counter.increment(5, once="epoch 1")
    assert 3 == counter.increment(2, once=("epoch", 2))
    counter.reset()
    assert 1 == counter.increment(once="epoch 1")


def test_counting_once_for_a_task_needs_one(collections: Collections) -> None:
    """At the client there is no task, and the error says what to write."""
    with pytest.raises(UsageError, match=r"where none runs. Give a reason of your own"):
        collections.counter("c").increment(once=True)


@pytest.mark.parametrize("n", [1.5, True, "1", None])
def test_only_whole_numbers_are_counted(collections: Collections, n: object) -> None:
    """Anything else is refused before it is sent."""
    with pytest.raises(UsageError, match="whole numbers"):
        collections.counter("c").increment(n)  # type: ignore[arg-type]


def test_a_number_has_64_bits(collections: Collections) -> None:
    """What is larger is an error, and the number is as it was."""
    counter = collections.counter("c")
    counter.reset(2**63 - 1)
    with pytest.raises(UsageError, match=r"between -2\*\*63"):
        counter.increment()
    with pytest.raises(UsageError, match=r"between -2\*\*63"):
        counter.increment(2**64)
    assert 2**63 - 1 == counter.value


def test_coroutines_use_the_twins(collections: Collections) -> None:
    """Each method has a twin."""

    async def work() -> None:
        counter = collections.counter("c")
        assert 2 == await counter.increment_async(2)
        assert 1 == await counter.decrement_async()
        assert 1 == await counter.value_async()
        await counter.reset_async(9)
        assert 9 == await counter.value_async()

    asyncio.run(work())
