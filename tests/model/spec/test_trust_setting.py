"""How far nodes are trusted, as a user writes it and as it is then."""

from __future__ import annotations

import re
from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError
from skyward.model.spec.trust_setting import DATA, opened_as, trusted


class Result:
    """A class of the user's."""


@pytest.mark.parametrize(
    ("written", "meant"),
    [(None, None), ("code", "code"), ("data", DATA), (sky.Data, DATA), (sky.Data(Result), sky.Data(Result))],
)
def test_trust_is_code_or_data(written: Any, meant: Any) -> None:
    """With classes of the user's, or without."""
    assert meant == trusted(written) == sky.Spec(trust=written).trust


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("dat", 'trust must be "code", "data" or sky.Data(...), not \'dat\'. Did you mean "data"?'),
        ("first-use", 'trust must be "code", "data" or sky.Data(...)'),
        (True, 'trust must be "code", "data" or sky.Data(...), not True.'),
        (Result, "Write trust=sky.Data(Result)."),
        ([Result], 'trust must be "code", "data" or sky.Data(...)'),
    ],
)
def test_anything_else_is_refused(written: Any, message: str) -> None:
    """With what was probably meant."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        sky.Compute(trust=written)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (("Result",), "sky.Data takes classes, not 'Result'"),
        (([Result],), "sky.Data takes classes"),
        ((Result(),), "Write sky.Data(MyResult)"),
        ((int,), "no class of yours"),
        ((eval,), "sky.Data takes classes"),
        ((type("Ends", (SystemExit,), {}),), "no class of yours"),
    ],
)
def test_only_classes_of_the_users_are_listed(classes: Any, message: str) -> None:
    """Not what is known anyway, nor what would end the program when it is raised."""
    with pytest.raises(ConfigError, match=re.escape(message)):
        sky.Data(*classes)


def test_a_class_is_listed_once() -> None:
    """Two lists of the same classes are the same."""
    assert sky.Data(Result) == sky.Data(Result, Result)
    assert hash(sky.Data(Result)) == hash(sky.Data(Result, Result))
    assert "Data(Result)" == repr(sky.Data(Result))


@pytest.mark.parametrize(
    ("trust", "strangers", "opened"),
    [
        (None, False, None),
        (None, True, DATA),
        ("code", True, None),
        (DATA, False, DATA),
        (sky.Data(Result), True, sky.Data(Result)),
    ],
)
def test_strangers_are_trusted_with_data_unless_the_user_says_otherwise(
    trust: Any, strangers: bool, opened: Any
) -> None:
    """What the user says wins both ways."""
    assert opened == opened_as(trust, strangers=strangers)
