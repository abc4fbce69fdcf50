import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ConfigError
from skyward.model.spec.nodes import Nodes, nodes

counts = st.integers(1, 1_000)


def test_a_number_is_a_fixed_size() -> None:
    """A number of nodes never changes: floor and ceiling are that number."""
    fixed = nodes(4)

    assert fixed == Nodes(4)
    assert (4, 4, False) == (fixed.floor, fixed.ceiling, fixed.elastic)


@pytest.mark.parametrize("pair", [(2, 8), [2, 8]])
def test_a_pair_is_desired_and_max(pair: Any) -> None:
    """A pair, or the list that TOML has instead, says how many there are at first and at most."""
    assert Nodes(desired=2, max=8) == nodes(pair)
    assert nodes(pair).elastic


def test_min_is_what_work_starts_with() -> None:
    """With `min` the pool works before all nodes are there, and does not grow past desired."""
    early = Nodes(8, min=4)

    assert (4, 8, False) == (early.floor, early.ceiling, early.elastic)


def test_a_max_alone_is_refused() -> None:
    """With the number that was given, and what to write."""
    with pytest.raises(
        ConfigError, match=r"sky\.Nodes\(max=2\) lacks desired, or min\. Write .*sky\.Nodes\(desired=8, min=4, max=16\)"
    ) as refused:
        Nodes(max=2)
    assert isinstance(refused.value, TypeError)


def test_what_is_wanted_may_follow_from_the_least() -> None:
    """A min without a desired is where the pool starts."""
    assert Nodes(4, min=4, max=16) == Nodes(min=4, max=16)
    assert Nodes(4, min=4) == Nodes(min=4)


def test_a_pool_may_drain_to_zero() -> None:
    """It opens without a node, and grows to its max, or to what is desired where there is none."""
    lazy = Nodes(min=0, max=8)
    assert (0, 0, 1, 8, True) == (lazy.initial, lazy.floor, lazy.desired, lazy.ceiling, lazy.elastic)
    assert (0, 4, True) == (Nodes(4, min=0).initial, Nodes(4, min=0).ceiling, Nodes(4, min=0).elastic)
    assert (4, 4) == (Nodes(4, min=2).initial, Nodes(4).initial)


def test_a_max_that_equals_desired_is_not_elastic() -> None:
    """A pool without room between floor and ceiling has nothing to scale."""
    assert not nodes((4, 4)).elastic


def test_a_nodes_value_is_returned_as_it_is() -> None:
    """Parsing twice is parsing once."""
    value = Nodes(4, min=2, max=16)

    assert nodes(value) is value


class Four:
    """Stand for the integers of other libraries."""

    def __index__(self) -> int:
        return 4


def test_integers_of_other_libraries_become_ints() -> None:
    """Whatever Python takes as an index is a number of nodes, and is kept as an int."""
    assert Nodes(4) == nodes(Four())  # type: ignore[arg-type]
    assert int is type(nodes(Four()).desired)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1, True, 1.5, 4.0, "4", None, {}, float("nan")])
def test_what_is_no_number_of_nodes_is_refused(value: Any) -> None:
    """The error names the parameter, the value, and what may be written."""
    with pytest.raises(ConfigError, match=r"nodes must be a whole number of at least 1, not .*Write nodes=4, nodes=\("):
        nodes(value)


def test_a_pair_the_wrong_way_round_is_turned_in_the_hint() -> None:
    """A max below desired is answered with the pair to write."""
    with pytest.raises(ConfigError, match=r"nodes=\(8, 2\) has more desired .* Write nodes=\(2, 8\)"):
        nodes((8, 2))


@pytest.mark.parametrize("value", [(2,), (1, 2, 3), (), (0, 4), (2, True), (2, "8"), (2.0, 8)])
def test_what_is_no_pair_of_counts_is_refused(value: Any) -> None:
    """A pair has two whole numbers of at least 1."""
    with pytest.raises(ConfigError, match="nodes must be a pair of"):
        nodes(value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"desired": 4, "min": 5}, "min must not be more than desired, but min=5 and desired=4"),
        ({"desired": 4, "max": 3}, "max must not be less than desired, but desired=4 and max=3"),
        ({"desired": 4, "min": 8, "max": 2}, r"min must not be more than max, but min=8 and max=2\..*min=2, max=8"),
        ({"min": 8, "max": 2}, "min must not be more than max"),
        ({"desired": 0}, "desired must be a whole number of at least 1, not 0"),
        ({"desired": True}, "desired must be a whole number of at least 1, not True"),
        ({"desired": 4, "min": -1}, "min must be a whole number of at least 0, not -1"),
        ({"desired": 4, "max": 8.0}, r"max must be a whole number of at least 1, not 8\.0"),
    ],
)
def test_bounds_that_contradict_are_refused(arguments: dict[str, Any], message: str) -> None:
    """In order min, desired, max, all of them whole numbers of at least 1."""
    with pytest.raises(ConfigError, match=message):
        Nodes(**arguments)


def test_min_and_max_are_keywords_only() -> None:
    """`Nodes(2, 8)` would leave open which bound is meant."""
    with pytest.raises(TypeError, match="positional"):
        Nodes(2, 8)  # type: ignore[call-arg]


@given(st.tuples(counts, counts, counts))
def test_ordered_bounds_are_kept_and_others_refused(bounds: tuple[int, int, int]) -> None:
    """Bounds in order make a value that holds them, is hashable and travels."""
    low, middle, high = sorted(bounds)

    value = Nodes(middle, min=low, max=high)

    assert value.floor <= value.desired <= value.ceiling
    assert value == pickle.loads(pickle.dumps(value))
    assert 1 == len({value, Nodes(middle, min=low, max=high)})
