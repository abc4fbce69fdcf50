"""What is asked of a container is checked before anything is made."""

from __future__ import annotations

from typing import Any

import pytest

import skyward as sky
from skyward.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"image": ""}, "image must be the name"),
        ({"image": "--privileged"}, "image must be the name"),
        ({"image": "a", "binary": "runc"}, '"docker" or "podman"'),
        ({"image": "a", "cpus": 0}, "cpus must be"),
        ({"image": "a", "cpus": float("nan")}, "cpus must be"),
        ({"image": "a", "memory": "lots"}, "memory"),
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, Any], message: str) -> None:
    """The parameter is named."""
    with pytest.raises(ConfigError, match=message):
        sky.Container(**given)


def test_values_are_equal_by_what_they_say() -> None:
    """As every provider."""
    assert sky.Container(image="a", memory="2GB") == sky.Container(image="a", memory=2.0)


def test_missing_command_line_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is done."""
    monkeypatch.setenv("PATH", "/nonexistent")
    compute = sky.Compute(provider=sky.Container(image="a"), console="silent", logging=False)
    with pytest.raises(ConfigError, match="Neither docker nor podman"), compute:
        pass
