"""How fast machines take what they are sent, on virtual time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from skyward.engine.nodes.upload_rates import Uploads
from skyward.errors import ProvisionError
from skyward.ssh.acceptance import NETWORK_FLOOR
from tests.simulated.loop import VirtualLoop

SIZE = int(10 * NETWORK_FLOOR)


def _sent(*seconds: float, gap: float = 1000.0) -> list[str]:
    """Send the same to one machine after the other, each beginning so much later; tell which were refused."""

    async def one(uploads: Uploads, number: int, took: float) -> str:
        await asyncio.sleep(number * gap)
        try:
            with uploads.sending(SIZE, f"machine {number}"):
                await asyncio.sleep(took)
        except ProvisionError as error:
            return str(error)
        return ""

    async def all_of_them() -> list[str]:
        uploads = Uploads()
        return list(await asyncio.gather(*(one(uploads, number, took) for number, took in enumerate(seconds))))

    loop = VirtualLoop(sockets=False)
    try:
        return loop.run_until_complete(all_of_them())
    finally:
        loop.close()


def test_a_machine_that_is_quick_enough_is_taken() -> None:
    """At the floor, or above it."""
    assert [""] * 3 == _sent(1.0, 5.0, 9.9)


def test_a_machine_that_is_slower_than_others_were_is_refused() -> None:
    """The message has its rate, and what is the least."""
    *good, refused = _sent(1.0, 1.0, 1.0, 100.0)
    assert [""] * 3 == good
    assert "machine 3 is not what was rented: It takes" in refused
    assert f"{NETWORK_FLOOR / 1000:.0f} kB/s are the least" in refused


def test_the_first_slow_one_is_refused_and_where_all_are_the_line_may_be(caplog: pytest.LogCaptureFixture) -> None:
    """Then no machine is to blame, but the log says so."""
    with caplog.at_level(logging.WARNING):
        first, *others = _sent(100.0, 100.0, 100.0)
    assert (True, ["", ""]) == ("machine 0 is not what was rented" in first, others)
    assert "your own line may be slow" in caplog.text


def test_machines_that_are_sent_to_at_once_share_the_line() -> None:
    """Ten at once may take ten times as long each, in whatever order they begin and end."""
    assert [""] * 10 == _sent(*[90.0] * 10, gap=0.0)
    assert [""] * 3 == _sent(29.0, 19.0, 9.0, gap=5.0)


def test_one_that_breaks_off_counts_for_nothing() -> None:
    """What went wrong is raised, and the next one is alone."""

    async def broken() -> None:
        uploads = Uploads()
        with pytest.raises(OSError, match="broken"), uploads.sending(SIZE, "one"):
            raise OSError("broken")
        with uploads.sending(SIZE, "two"):
            await asyncio.sleep(1.0)

    loop = VirtualLoop(sockets=False)
    loop.run_until_complete(broken())
    loop.close()
