"""A machine over SSH has a time to let us in, apart from the time to be made ready."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from attrs import evolve

import skyward as sky
from skyward.engine.instances.recipe import Recipe
from skyward.engine.nodes.ssh_host import SSHHost
from skyward.errors import ProvisionError, UnreachableError
from skyward.model.instances.machine import SSHAddress
from tests.simulated.loop import VirtualLoop

RECIPE = Recipe(image=sky.Image(), ops=(), ttl=600, life=None, end=(), timeout=60.0, tell=lambda event: None)


def prepared(monkeypatch: pytest.MonkeyPatch, recipe: Recipe, *, hangs: bool = False) -> tuple[Exception, float, int]:
    """Make a machine ready that lets no login in: how it ends, after how long, and how often it was dialled."""
    attempts = 0

    async def dial_once(address: SSHAddress) -> None:
        nonlocal attempts
        attempts += 1
        if hangs:
            await asyncio.sleep(1000.0)
        raise UnreachableError("connection refused")

    monkeypatch.setattr("skyward.ssh.dial._dial_once", dial_once)
    engine: Any = None
    host = SSHHost(engine, SSHAddress(host="10.0.0.1"), "node", recipe)
    with contextlib.closing(VirtualLoop(sockets=False)) as loop:
        with pytest.raises(sky.NodeError) as caught:
            loop.run_until_complete(host.prepare())
        return caught.value, loop.time(), attempts


def test_a_machine_that_lets_nobody_in_is_given_up_after_the_time_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that is longer than it may take to be made ready; the last refusal is shown, and what to do."""
    error, took, attempts = prepared(monkeypatch, evolve(RECIPE, ssh_timeout=90.0, ssh_retry_interval=10.0))
    assert isinstance(error, UnreachableError)
    assert "10.0.0.1 did not accept SSH within 90 s: connection refused" in str(error)
    assert "raise ssh_timeout" in str(error)
    assert 90.0 == pytest.approx(took, abs=0.6)
    assert 10 == attempts


def test_an_attempt_that_hangs_is_broken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is that for all attempts together."""
    error, took, attempts = prepared(monkeypatch, evolve(RECIPE, ssh_timeout=5.0), hangs=True)
    assert "did not accept SSH within 5 s: no attempt has come to its end" in str(error)
    assert (5.5, 1) == (pytest.approx(took, abs=0.1), attempts)


def test_without_a_time_of_its_own_it_is_part_of_making_the_machine_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one limit for both."""
    error, took, _ = prepared(monkeypatch, RECIPE, hangs=True)
    assert isinstance(error, ProvisionError)
    assert "was not ready within 60 s" in str(error)
    assert 60.0 == pytest.approx(took, abs=0.1)
