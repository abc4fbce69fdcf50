"""Machines that clouds list are judged by the clock of the cloud that lists them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

import pytest

from skyward.errors import SkywardError
from skyward.hookspecs import Instance, Tags, hookimpl
from skyward.market.listed_instances import look
from skyward.plan.instances.owned_instances import chosen
from tests.simulated.provider import ScriptedCloud


class Fast(ScriptedCloud):
    """A cloud whose clock differs from ours, and which has one machine with an expiry."""

    def __init__(self, ahead: float | None, expires_in: float) -> None:
        super().__init__()
        self.ahead = ahead
        self.expires_at = time.time() + (ahead or 0.0) + expires_in

    @hookimpl
    async def skyward_owned(self) -> Sequence[Instance]:
        return [Instance(id="i", node=0, provider="cloud", tags=Tags(pool_id="a1", expires_at=self.expires_at))]


class Silent(Fast):
    """The same, which cannot tell its clock."""

    @hookimpl
    async def skyward_clock(self) -> float | None:
        raise SkywardError("There is no clock.")


def expired(provider: Any) -> list[str]:
    """List what counts as forgotten, as the program `sky` asks for it."""
    found = asyncio.run(look(provider)).found
    return [one.id for handle, one in found if chosen([one], only_expired=True, now=handle.now())]


@pytest.mark.parametrize("ahead", [4500.0, 0.0, -4500.0, None])
@pytest.mark.parametrize(("expires_in", "gone"), [(60.0, []), (-1200.0, ["i"])])
def test_expiry_is_judged_by_the_clouds_clock(
    ahead: float | None, expires_in: float, gone: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    """However wrong that of this computer is, which is logged."""
    assert gone == expired(Fast(ahead, expires_in))
    told = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (1 if ahead else 0) == len(told)


def test_a_cloud_that_cannot_tell_its_clock_is_judged_by_ours() -> None:
    """And asked all the same."""
    assert ["i"] == expired(Silent(None, -1200.0))
