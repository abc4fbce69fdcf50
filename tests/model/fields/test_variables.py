import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from skyward.errors import ConfigError
from skyward.model.fields.variables import Variables, variables

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
environments = st.dictionaries(names, texts, max_size=5)


@given(environments)
def test_it_reads_like_the_dict_it_was_made_of(items: dict[str, str]) -> None:
    """Equal to the dict in both directions, same items in the same order, same repr."""
    value = variables(items, "env")

    assert value == items
    assert items == value
    assert list(items.items()) == list(value.items())
    assert repr(items) == repr(value)
    assert items == {**value}


@given(environments)
def test_it_is_a_value(items: dict[str, str]) -> None:
    """Order makes no difference to equality and hash; it pickles and copies to an equal one."""
    value = Variables(items)
    turned = Variables(dict(reversed(items.items())))

    assert value == turned
    assert hash(value) == hash(turned)
    assert value == pickle.loads(pickle.dumps(value)) == copy.deepcopy(value)


@given(environments, environments)
def test_the_right_side_of_a_union_wins(left: dict[str, str], right: dict[str, str]) -> None:
    """The operator does what it does for dicts, from either side."""
    assert left | right == Variables(left) | right
    assert left | right == left | Variables(right)


def test_it_keeps_no_tie_to_the_dict_it_was_made_of() -> None:
    """Changing the dict later changes nothing."""
    items = {"A": "1"}
    value = Variables(items)
    items["A"] = "2"

    assert "1" == value["A"]


def test_it_cannot_be_changed() -> None:
    """Neither items nor attributes can be set or deleted."""
    value: Any = Variables({"A": "1"})
    with pytest.raises(TypeError, match="does not support item assignment"):
        value["A"] = "2"
    with pytest.raises(AttributeError, match="cannot be changed"):
        value._items = {}
    with pytest.raises(AttributeError, match="cannot be changed"):
        del value._items


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "A=B", "Ä", "A\n", 3, None])
def test_names_are_those_of_a_shell(name: Any) -> None:
    """What no shell could export is refused, by name."""
    with pytest.raises(ConfigError, match=r"env has the name .*, which is none for a variable"):
        variables({name: "1"}, "env")


def test_a_number_is_answered_with_the_text_to_write() -> None:
    """Numbers are the usual mistake, and the hint quotes them."""
    with pytest.raises(ConfigError, match=r"env\['THREADS'\] must be text, not 4. Write \"4\"."):
        variables({"THREADS": 4}, "env")


@pytest.mark.parametrize("value", [None, ["secret"], b"secret", {"secret": "secret"}, "a\0secret"])
def test_a_refused_text_is_not_shown(value: Any) -> None:
    """What stands where a secret may be is named by its type alone."""
    with pytest.raises(ConfigError, match=r"env\['KEY'\] must ") as caught:
        variables({"KEY": value}, "env")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("value", [None, "A=1", [("A", "1")], 3])
def test_what_is_no_mapping_is_refused(value: Any) -> None:
    """The error shows how variables are written."""
    with pytest.raises(ConfigError, match=r'shell_vars must be a dict .* Write shell_vars=\{"NAME": "text"\}'):
        variables(value, "shell_vars")
