"""`sky.dict`, beside Python's own."""

from __future__ import annotations

import asyncio
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from skyward.collections.named_collections import Collections
from skyward.errors import SerializationError
from tests.collections.store_server import Opener
from tests.seeds import share

KEYS = (
    st.sampled_from([0, 1, 1.0, True, "1", b"1", None, (1, 2), (1.0, 2)])
    | st.integers(-3, 3)
    | st.text(max_size=2)
    | st.floats(-2, 2)
)
VALUES = st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=3)


@pytest.mark.parametrize("consistency", ["strong", "eventual"])
def test_it_does_what_a_dict_does(collections: Collections, consistency: Any) -> None:
    """Whatever is done, in whichever order, it holds and returns what Python's dict does."""
    numbers = itertools.count()

    class Both(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.shared = collections.dict(f"d{next(numbers)}", consistency=consistency)
            self.plain: dict[Any, Any] = {}

        @rule(key=KEYS, value=VALUES)
        def set(self, key: Any, value: Any) -> None:
            self.shared[key] = value
            self.plain[key] = value

        @rule(key=KEYS)
        def delete(self, key: Any) -> None:
            if key in self.plain:
                del self.plain[key], self.shared[key]
            else:
                with pytest.raises(KeyError):
                    del self.shared[key]

        @rule(key=KEYS)
        def item(self, key: Any) -> None:
            if key in self.plain:
                assert self.plain[key] == self.shared[key]
            else:
                with pytest.raises(KeyError):
                    self.shared[key]

        @rule(key=KEYS, default=VALUES)
        def get(self, key: Any, default: Any) -> None:
            assert self.plain.get(key, default) == self.shared.get(key, default)
            assert (key in self.plain) == (key in self.shared)

        @rule(key=KEYS, default=VALUES)
        def pop(self, key: Any, default: Any) -> None:
            assert self.plain.pop(key, default) == self.shared.pop(key, default)

        @rule(key=KEYS, default=VALUES)
        def setdefault(self, key: Any, default: Any) -> None:
            assert self.plain.setdefault(key, default) == self.shared.setdefault(key, default)

        @rule(pairs=st.dictionaries(KEYS, VALUES, max_size=4), named=st.dictionaries(st.just("a"), VALUES))
        def update(self, pairs: dict[Any, Any], named: dict[str, Any]) -> None:
            self.plain.update(pairs, **named)
            self.shared.update(pairs.items(), **named)

        @rule()
        def clear(self) -> None:
            self.plain.clear()
            self.shared.clear()

        @invariant()
        def is_the_same(self) -> None:
            assert self.plain == dict(self.shared.items())
            assert set(self.plain) == set(self.shared.keys()) == set(self.shared)
            assert len(self.plain) == len(self.shared)
            assert bool(self.plain) == bool(self.shared)
            assert sorted(map(str, self.plain.values())) == sorted(map(str, self.shared.values()))

    run_state_machine_as_test(
        Both, settings=settings(max_examples=share(30, least=0.3), stateful_step_count=20, deadline=None)
    )


def test_holders_see_what_others_wrote(opened: Opener) -> None:
    """What one holder has stored, another reads at once."""
    one, other = opened("one").dict("d"), opened("other").dict("d")
    one["k"] = {"a": 1}
    assert {"a": 1} == other["k"]
    del other["k"]
    assert "k" not in one


def test_many_keys_are_read_in_batches(collections: Collections) -> None:
    """Thousands of keys come once each, and a change during the iteration does no harm."""
    shared = collections.dict("d")
    shared.update({number: str(number) for number in range(5000)})
    found = []
    for key in shared:
        found.append(key)
        shared.pop(key)
    assert list(range(5000)) == sorted(found)
    assert 0 == len(shared)


def test_of_threads_that_pop_one_gets_the_value(collections: Collections) -> None:
    """A value is popped once."""
    shared = collections.dict("d")
    shared.update((number, number) for number in range(200))
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda key: shared.pop(key, None), [*range(200), *range(200)]))
    assert list(range(200)) == sorted(value for value in found if value is not None)


def test_a_value_that_cannot_be_pickled_is_named(collections: Collections) -> None:
    """The error names the dict and the key, and nothing is stored."""
    shared = collections.dict("results")
    with pytest.raises(SerializationError, match=r"value of 'k' in dict 'results'"):
        shared["k"] = threading.Lock()
    assert "k" not in shared


def test_coroutines_use_the_twins(collections: Collections) -> None:
    """Each method has a twin."""

    async def work() -> None:
        shared = collections.dict("d")
        await shared.setitem_async("a", 1)
        await shared.update_async({"b": 2}, c=3)
        assert 1 == await shared.getitem_async("a") == await shared.get_async("a")
        assert await shared.contains_async("b")
        assert 3 == await shared.len_async()
        assert {"a", "b", "c"} == {key async for key in shared} == set(await shared.keys_async())
        assert [1, 2, 3] == sorted(await shared.values_async())
        assert {"a": 1, "b": 2, "c": 3} == dict(await shared.items_async())
        assert 4 == await shared.setdefault_async("d", 4)
        assert 4 == await shared.pop_async("d")
        await shared.delitem_async("a")
        with pytest.raises(KeyError, match="a"):
            await shared.getitem_async("a")
        await shared.clear_async()
        assert 0 == await shared.len_async()

    asyncio.run(work())
