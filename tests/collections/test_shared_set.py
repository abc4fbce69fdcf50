"""`sky.set`, beside Python's own."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from skyward.collections.named_collections import Collections
from tests.seeds import share

ELEMENTS = st.sampled_from([0, 1, 1.0, True, "1", b"1", None, (1, 2)]) | st.text(max_size=2) | st.floats(-2, 2)


@pytest.mark.parametrize("consistency", ["strong", "eventual"])
def test_it_does_what_a_set_does(collections: Collections, consistency: Any) -> None:
    """Whatever is done, in whichever order, it holds what Python's set does."""
    numbers = itertools.count()

    class Both(RuleBasedStateMachine):
        @initialize()
        def begin(self) -> None:
            self.shared = collections.set(f"s{next(numbers)}", consistency=consistency)
            self.plain: set[Any] = set()

        @rule(value=ELEMENTS)
        def add(self, value: Any) -> None:
            self.shared.add(value)
            self.plain.add(value)

        @rule(value=ELEMENTS)
        def discard(self, value: Any) -> None:
            self.shared.discard(value)
            self.plain.discard(value)

        @rule(value=ELEMENTS)
        def remove(self, value: Any) -> None:
            if value in self.plain:
                self.shared.remove(value)
                self.plain.remove(value)
            else:
                with pytest.raises(KeyError):
                    self.shared.remove(value)

        @rule(values=st.lists(ELEMENTS, max_size=4))
        def update(self, values: list[Any]) -> None:
            self.shared.update(values, [7])
            self.plain.update(values, [7])

        @rule(value=ELEMENTS)
        def contains(self, value: Any) -> None:
            assert (value in self.plain) == (value in self.shared)

        @rule()
        def clear(self) -> None:
            self.shared.clear()
            self.plain.clear()

        @invariant()
        def is_the_same(self) -> None:
            found = list(self.shared)
            assert self.plain == set(found)
            assert len(self.plain) == len(found) == len(self.shared)

    run_state_machine_as_test(
        Both, settings=settings(max_examples=share(30, least=0.3), stateful_step_count=20, deadline=None)
    )


def test_coroutines_use_the_twins(collections: Collections) -> None:
    """Each method has a twin."""

    async def work() -> None:
        shared = collections.set("s")
        await shared.add_async(1)
        await shared.update_async([2, 3])
        assert await shared.contains_async(1)
        assert 3 == await shared.len_async()
        await shared.discard_async(1)
        await shared.remove_async(2)
        assert [3] == [value async for value in shared]
        with pytest.raises(KeyError, match="2"):
            await shared.remove_async(2)
        await shared.clear_async()
        assert not await shared.contains_async(3)

    asyncio.run(work())
