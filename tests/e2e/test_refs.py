"""Values that are put once, in real calls."""

from __future__ import annotations

import numpy as np
import pytest

import skyward as sky


@sky.function
def total(numbers: list[int], more: int = 0) -> int:
    """Add numbers up."""
    return sum(numbers) + more


@sky.function
def changed(numbers: list[int]) -> int:
    """Change what came, and give its length."""
    numbers.append(1)
    return len(numbers)


@sky.function
def inside(values: dict[str, list[int]]) -> int:
    """Use what is inside a container."""
    return len(values["numbers"])


NUMBERS = list(range(300_000))


@pytest.fixture(scope="module")
def pool():  # type: ignore[no-untyped-def]  # a fixture
    """Two nodes."""
    with sky.Compute(nodes=2, console="silent") as pool:
        yield pool


def test_a_ref_is_used_by_every_kind_of_call(pool: sky.Compute) -> None:
    """The function gets the value."""
    numbers = pool.put(NUMBERS)
    expected = sum(NUMBERS)
    assert total(numbers) >> pool == expected
    assert total(numbers, more=1) >> pool == expected + 1
    assert total(numbers) @ pool == [expected] * 2
    assert (total(numbers) > pool).result() == expected
    assert (total(numbers, 1) & total(numbers, 2)) >> pool == (expected + 1, expected + 2)
    assert pool.map(lambda more: total.local(numbers, more), [1, 2]) == [expected + 1, expected + 2]
    assert inside({"numbers": numbers}) >> pool == len(NUMBERS)


def test_each_call_has_a_value_of_its_own(pool: sky.Compute) -> None:
    """What one changes, the next does not see."""
    numbers = pool.put([1, 2])
    assert [changed(numbers) >> pool for _ in range(3)] == [3] * 3


def test_a_function_captures_a_ref(pool: sky.Compute) -> None:
    """As the value."""
    numbers = pool.put(NUMBERS)

    @sky.function
    def captured() -> int:
        return len(numbers)  # type: ignore[arg-type]  # on the node it is the list

    assert captured() >> pool == len(NUMBERS)


def test_calls_that_were_made_before_a_ref_was_freed_have_its_value(pool: sky.Compute) -> None:
    """Whenever they run."""
    numbers = pool.put(NUMBERS)
    futures = [total(numbers, more) > pool for more in range(20)]
    numbers.free()
    assert [future.result() for future in futures] == [sum(NUMBERS) + more for more in range(20)]
    with pytest.raises(sky.RefError, match="Put the value again"):
        _ = total(numbers) >> pool


def test_sky_put_uses_the_active_pool() -> None:
    """Its Refs end with the pool."""
    with sky.Compute(console="silent") as pool:
        numbers = sky.put(NUMBERS)
        assert total(numbers) >> sky == sum(NUMBERS)
        with sky.Compute(console="silent") as other, pytest.raises(sky.RefError, match="another pool"):
            _ = total(numbers) >> other
        assert total(numbers) >> pool == sum(NUMBERS)
    with pytest.raises(sky.RefError, match="its pool is closed"):
        numbers.get()


def test_what_cannot_be_sent_cannot_be_put(pool: sky.Compute) -> None:
    """The message names what is to blame."""
    with pytest.raises(sky.SerializationError, match="generator"):
        pool.put({"rows": (row for row in range(3))})


def test_nothing_is_kept_once_the_pool_is_left() -> None:
    """Though the pool object lives on, and the user's array too."""
    array = np.arange(1 << 20)
    with sky.Compute(console="silent") as pool:
        for _ in range(3):
            assert total(array) >> pool == (1 << 19) * ((1 << 20) - 1)
        ref = pool.put(array)
        buffers = pool._running.maker._buffers
        assert buffers.held == array.nbytes
    assert buffers.held == 0
    assert not buffers._kept
    assert repr(ref) == "<Ref, freed>"
