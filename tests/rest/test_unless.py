"""A refusal that is no failure."""

from __future__ import annotations

import asyncio

import pytest

from skyward.errors import ConfigError, ProvisionError
from skyward.rest.unless import unless


async def fails() -> str:
    """Raise as a call does that was refused."""
    raise ConfigError("There is no such machine.")


async def succeeds() -> str:
    """Return as a call does."""
    return "done"


def test_a_call_that_goes_well_returns_its_answer() -> None:
    """Whatever would be a refusal."""
    assert "done" == asyncio.run(unless(lambda error: True, succeeds()))


def test_a_refusal_that_is_none_is_no_answer() -> None:
    """As where what is to be deleted is gone."""
    assert asyncio.run(unless(lambda error: isinstance(error, ConfigError), fails())) is None


def test_another_refusal_is_raised() -> None:
    """As it is."""
    with pytest.raises(ConfigError, match="no such machine"):
        asyncio.run(unless(lambda error: isinstance(error, ProvisionError), fails()))
