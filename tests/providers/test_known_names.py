"""Names of places that the user wrote."""

from __future__ import annotations

import pytest

from skyward.errors import ConfigError
from skyward.providers.known_names import check_places


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
