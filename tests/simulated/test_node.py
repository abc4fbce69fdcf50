"""A scripted node and a real one answer the same calls alike, so that what is held on the one is true of the other."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import skyward as sky
from skyward.engine.calls import mapping, operations
from skyward.engine.pool.running import Running
from tests.simulated import plan
from tests.simulated.plan import HANGS, SPENT, Plan, dies, raises, returns
from tests.simulated.scripted_pool import ScriptedPool

act = sky.function(plan.act)
act_and_yield = sky.function(plan.act_and_yield)
act_on_items = sky.function(plan.act_on_items)


@pytest.fixture(scope="module")
def real() -> Iterator[Running]:
    """Two Local nodes of one slot each."""
    with sky.Compute(nodes=2, console="silent", logging=False) as pool:
        yield pool._running


@pytest.fixture(scope="module")
def scripted() -> Iterator[Running]:
    """Two scripted nodes of one slot each."""
    with ScriptedPool([1], [1]) as pool:
        yield pool


def _outcome(do: Callable[[], Any]) -> Any:
    try:
        value = do()
    except Exception as error:
        return type(error), [_plain(one) for one in sky.partial(error)]
    return _plain(value)


def _plain(value: Any) -> Any:
    return type(value) if isinstance(value, BaseException) else value


def _items_until_the_end(pool: Running, *plans: Plan) -> list[Any]:
    stream, found = operations.run(pool, act_and_yield(*plans)), []
    while True:
        item = _outcome(lambda: next(stream, "over"))
        found.append(item)
        if item == "over":
            return found


CASES: dict[str, Callable[[Running], Any]] = {
    "value": lambda pool: operations.run(pool, act(returns(7))),
    "exception": lambda pool: operations.run(pool, act(raises(KeyError("x")))),
    "death": lambda pool: operations.run(pool, act(dies())),
    "spent": lambda pool: operations.run(pool, act(SPENT)),
    "timeout": lambda pool: operations.run(pool, act(HANGS).with_timeout(0.2)),
    "exhausted": lambda pool: operations.run(pool, act(dies()).with_retries(1)),
    "cancelled": lambda pool: operations.run_async(pool, act(HANGS)).cancel(),
    "items": lambda pool: _items_until_the_end(pool, Plan(items=tuple(range(50)))),
    "items, then an exception": lambda pool: _items_until_the_end(
        pool, Plan(items=(1, 2), ends=plan.Ending.RAISES, value=OSError("disk"))
    ),
    "items, then death": lambda pool: _items_until_the_end(pool, Plan(items=(1, 2), ends=plan.Ending.DIES)),
    "fed": lambda pool: operations.run(pool, act_on_items(iter(range(50)), Plan(takes=50))),
    "fed by an endless one": lambda pool: operations.run(pool, act_on_items(itertools.count(), Plan(takes=20))),
    "group": lambda pool: operations.run_all(
        pool, tuple(act(one) for one in (returns(1), raises(KeyError()), HANGS)), keep_errors=False
    ),
    "group with failures": lambda pool: [
        _plain(one)
        for one in operations.run_all(pool, tuple(act(one) for one in (returns(1), dies(), SPENT)), keep_errors=True)
    ],
    "broadcast": lambda pool: operations.broadcast(pool, act(returns(7)), keep_errors=False),
    "broadcast of failures": lambda pool: [
        _plain(one) for one in operations.broadcast(pool, act(raises(KeyError())), keep_errors=True)
    ],
    "map": lambda pool: mapping.collect(pool, act, [returns(number) for number in range(100)], keep_errors=False),
    "map with a failure": lambda pool: mapping.collect(
        pool, act, [returns(1), raises(ValueError()), *[HANGS] * 3], keep_errors=False
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_scripted_node_answers_as_a_real_one(
    real: Running, scripted: Running, case: Callable[[Running], Any]
) -> None:
    """The same values, the same classes of errors, and the same that was done until then."""
    expected = _outcome(lambda: case(real))
    assert expected == _outcome(lambda: case(scripted))
    # All slots are free afterwards, and work.
    assert [7, 7] == operations.broadcast(real, act(returns(7)), keep_errors=False)
