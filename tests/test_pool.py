"""
A pool is a value until it is entered, and says afterwards that it was.
"""

from __future__ import annotations

import pytest

import skyward as sky


@sky.function
def double(x: int) -> int:
    return 2 * x


class Scale:
    """Multiply by a factor."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    @sky.function
    def times(self, x: int) -> int:
        return self.factor * x


def test_a_pool_that_is_not_open_has_nothing() -> None:
    """Building one starts nothing."""
    pool = sky.Compute(nodes=3, concurrency=4)
    assert (False, 0, 0, 4) == (pool.is_active, pool.instance_count, pool.current_nodes(), pool.concurrency)
    assert {"name": "pool", "active": False} == pool.snapshot()
    assert "<pool 'pool', not open>" == repr(pool)


@pytest.mark.parametrize(
    "use", [lambda pool: double(1) >> pool, lambda pool: pool.resize(2), lambda pool: pool.refresh()]
)
def test_a_pool_is_used_while_it_is_open(use: object) -> None:
    """Everything else says how to open it."""
    with pytest.raises(sky.PoolClosedError, match=r"not open yet: use it inside `with sky\.Compute"):
        use(sky.Compute())  # type: ignore[operator]


@pytest.mark.slow
def test_an_open_pool_tells_about_itself() -> None:
    """Handlers given before it opened hear of it, and methods of objects run in it as functions do."""
    ready: list[int | None] = []
    pool = sky.Compute(nodes=2, console="silent", logging=False)
    assert pool.on(sky.NodeReady, lambda event: ready.append(event.node)) is pool
    with pool:
        assert (True, 2, 2) == (pool.is_active, pool.instance_count, pool.current_nodes())
        assert {0: "ready", 1: "ready"} == pool.snapshot()["nodes"]
        assert "<pool 'pool', open>" == repr(pool)
        assert 21 == Scale(7).times(3) >> pool
        assert [0, 7, 14] == pool.map(Scale(7).times, range(3))
        with pytest.raises(sky.ConfigError, match="nodes must be"):
            pool.resize(0)
    assert (False, 0) == (pool.is_active, pool.current_nodes())
    assert [0, 1] == sorted(node for node in ready if node is not None)


def test_decorator_refuses_what_the_pool_refuses() -> None:
    """Where it is written, not where the function is called."""
    with pytest.raises(sky.UsageError, match=r"has no setting 'node'\. Did you mean 'nodes'"):
        sky.pool(node=2)  # type: ignore[call-arg]


def test_partial_of_another_error_is_empty() -> None:
    """An error that no pool raised carries nothing."""
    assert [] == sky.partial(ValueError("x"))


@pytest.mark.slow
def test_a_pool_at_home_is_not_left() -> None:
    """Its nodes end with this program; it goes on, and has no calls of another one."""
    with sky.Compute(console="silent", logging=False) as pool:
        with pytest.raises(sky.ConfigError, match="its nodes are processes of this program, and end with it"):
            pool.detach()
        assert (pool.calls(), list(pool.results())) == ((), [])
        assert double(2) >> pool == 4
