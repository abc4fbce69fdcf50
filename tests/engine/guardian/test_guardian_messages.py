"""What a client tells its guardian survives the way, and opens only where the client's modules are found."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest
from attrs import evolve

from skyward.engine.guardian.guardian_messages import Client, charge, charged, frame, framed, message, packed, sealed
from skyward.plan.instances.guardian_duty import Duty, InstanceRented
from skyward.providers.ssh import SSH

DUTY = Duty(pool_id="a1", pool_name="pool", ttl=600.0, machines=frozenset({"i-1"}))


def read(data: bytes) -> bytes:
    """Read one message."""

    async def one() -> bytes:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        return await frame(reader)

    return asyncio.run(one())


def test_a_message_arrives_as_it_was_sent() -> None:
    """With its length before it."""
    told = InstanceRented(("i-1", "i-2"))
    assert told == message(read(packed(told)))
    assert b"" == read(framed(b""))


@pytest.mark.parametrize("cut", [0, 3, 8, 11])
def test_a_message_that_is_cut_off_is_the_end(cut: int) -> None:
    """Wherever it is cut."""
    with pytest.raises(EOFError):
        read(packed("hello")[:cut])


def test_a_charge_tells_the_client_s_surroundings() -> None:
    """Its process, where it imports from, and its environment; the rest stays sealed."""
    client, inner = message(read(charge(SSH(hosts=["a"]), DUTY)))
    assert Client(os.getpid(), tuple(map(os.path.abspath, sys.path)), dict(os.environ)) == client
    assert isinstance(inner, bytes)


def test_a_provider_is_made_anew_from_what_it_was_made_of() -> None:
    """What it opened meanwhile stays here."""
    provider, told = charged(sealed(SSH(hosts=["a", "b"]), DUTY))
    assert SSH(hosts=["a", "b"]) == provider
    assert DUTY == told


def test_a_provider_that_is_no_value_is_pickled() -> None:
    """As it is."""
    provider, _ = charged(sealed({"any": "thing"}, DUTY))
    assert {"any": "thing"} == provider


def test_environment_variables_are_kept_out_of_messages() -> None:
    """They hold credentials."""
    assert "environ" not in repr(evolve(Client.here(), environ={"SECRET": "x"}))
