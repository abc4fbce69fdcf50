"""Names that the user wrote."""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.providers.known_names import FEW, check_places, unknown_name


@pytest.mark.parametrize(
    ("wanted", "hint"), [("NYC2", "Did you mean 'nyc3'?"), ("moon", "There are ams3, nyc3.")], ids=str
)
def test_a_place_that_there_is_not_is_refused(wanted: str, hint: str) -> None:
    """The hint has the nearest name, or all of them."""
    with pytest.raises(ConfigError, match=f"Shed has no region '{wanted}'") as caught:
        check_places(["nyc3", wanted], ["nyc3", "ams3"], provider="shed", title="Shed", noun="region")
    assert (caught.value.provider, caught.value.hint) == ("shed", hint)


def test_a_place_that_there_is_passes() -> None:
    """So does none."""
    check_places((), (), provider="shed", title="Shed", noun="region")
    check_places(["nyc3"], ["nyc3"], provider="shed", title="Shed", noun="region")


@pytest.mark.parametrize(
    ("known", "hint"), [([], "There are none."), ([f"type-{number}" for number in range(FEW + 1)], None)]
)
def test_an_error_lists_the_names_where_they_are_few(known: list[str], hint: str | None) -> None:
    """A cloud may have hundreds of instance types."""
    assert hint == unknown_name("Shed has no such type", "zzz", known, provider="shed").hint
