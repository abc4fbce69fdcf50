"""Documents know where each value is written; errors name the place."""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError, UsageError
from skyward.plan.config.config_tree import Problem, merged, parsed, place_of, plain, refusal, tree
from skyward.plan.config.key_places import KeyPlace

TEXT = "[pools.train]\nnodes = 0\nimage = { pip = 4 }\n"


def test_a_document_stays_what_it_is() -> None:
    """Also lists of tables in it."""
    document = parsed("a = [{ b = 1 }, [2]]\n[c.d]\ne = 'f'", "skyward.toml")
    assert document == plain(tree(document, "skyward.toml"))


def test_the_upper_value_counts() -> None:
    """Unless both are tables, and not of different types."""
    upper = tree({"a": {"b": 1}, "list": [1], "p": {"type": "A"}, "q": {"x": 1}, "r": 1}, "upper")
    lower = tree({"a": {"b": 2, "c": 3}, "list": [2], "p": {"type": "B", "x": 1}, "q": {"type": "B"}, "r": {}}, "lower")
    both = merged(upper, lower)
    assert {"a": {"b": 1, "c": 3}, "list": [1], "p": {"type": "A"}, "q": {"x": 1, "type": "B"}, "r": 1} == plain(both)
    assert ["upper", "lower"] == [both.value["a"].value[key].file for key in "bc"]


@pytest.mark.parametrize(
    ("at", "place"),
    [
        (("pools", "train", "nodes"), KeyPlace(2, 1)),
        (("pools", "train", "image", "pip"), KeyPlace(3, 11)),
        (("pools", "train", "image", "missing"), KeyPlace(3, 1)),
        (("pools", "train", "missing", "below"), KeyPlace(1, 1)),
        ((), KeyPlace(1, 1)),
    ],
)
def test_a_problem_is_at_its_key_or_the_table_around_it(at: tuple[str, ...], place: KeyPlace) -> None:
    """Where nothing is written, the nearest that is."""
    assert place == place_of(Problem("skyward.toml", at, ""), {"skyward.toml": TEXT})


def test_one_problem_is_raised_as_what_it_is_and_several_as_one() -> None:
    """With all that each of them says."""
    one = Problem("skyward.toml", ("pools", "train", "nodes"), "It is wrong.", "Mend it.", UsageError)
    error = refusal([one], {"skyward.toml": TEXT})
    assert (UsageError, "skyward.toml:2:1: pools.train.nodes: It is wrong. Mend it.") == (type(error), str(error))
    several = refusal([one, one], {"skyward.toml": TEXT})
    assert (ConfigError, 3) == (type(several), len(str(several).splitlines()))
