"""
What a provider's list of machines means.
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from skyward.model.instances.machine import Instance, InstanceState, SSHAddress
from skyward.model.instances.tags import Tags
from skyward.plan.instances.instance_list import APPEARING, ORPHANED_FOR, Known, ListFindings, Orphan, compare

ADDRESS = SSHAddress(host="10.0.0.1")
PENDING = Instance(id="i-1", node=0, provider="x", state=InstanceState.PENDING)
RUNNING = Instance(id="i-1", node=0, provider="x", address=ADDRESS)
HOMELESS = Instance(id="i-1", node=0, provider="x", state=InstanceState.RUNNING)
ENDING = Instance(id="i-1", node=0, provider="x", state=InstanceState.ENDING, address=ADDRESS)
ENDED = Instance(id="i-1", node=0, provider="x", state=InstanceState.ENDED, address=ADDRESS)
SEEN = Known(id="i-1", since=0.0, runs=True, seen=True)


def look(known: Known, *listed: Instance, now: float = 1.0, **more: Any) -> ListFindings:
    return compare([known], listed, now=now, patience=300.0, **more)


@pytest.mark.parametrize("listed", [PENDING, HOMELESS])
def test_a_machine_that_is_on_its_way_is_waited_for(listed: Instance) -> None:
    """It runs once it says so and has an address."""
    found = look(Known(id="i-1", since=0.0), listed)
    assert (found.running, found.gone, found.overdue) == ((), (), ())
    assert found.known[0].seen
    found = look(found.known[0], RUNNING)
    assert found.running == (RUNNING,)
    assert look(found.known[0], RUNNING).running == ()


def test_a_machine_that_takes_too_long_is_overdue() -> None:
    """Whether it is listed or not."""
    assert look(Known(id="i-1", since=0.0), PENDING, now=301.0).overdue == ("i-1",)
    assert look(SEEN, RUNNING, now=301.0).overdue == ()


@pytest.mark.parametrize("listed", [ENDING, ENDED])
def test_a_machine_that_the_provider_takes_is_gone(listed: Instance) -> None:
    """At once, because its warning is short."""
    ((name, why),) = look(SEEN, listed).gone
    assert name == "i-1"
    assert "provider" in why


@pytest.mark.parametrize("listed", [ENDING, ENDED])
def test_a_machine_that_the_provider_says_why_it_ended_is_gone_for_that_reason(listed: Instance) -> None:
    """In one line, as part of a sentence."""
    ((name, why),) = look(SEEN, evolve(listed, reason="the image could\nnot be pulled.")).gone
    assert ("i-1", "the provider says: the image could not be pulled") == (name, why)


def test_a_machine_is_gone_when_two_lists_miss_it() -> None:
    """One list may come from a replica that lags."""
    found = look(SEEN)
    assert found.gone == ()
    assert look(found.known[0]).gone == (("i-1", "the provider lists it no more"),)
    found = look(found.known[0], RUNNING)
    assert look(found.known[0]).gone == ()


def test_a_machine_that_was_just_rented_may_be_missing() -> None:
    """But not for ever."""
    new = Known(id="i-1", since=0.0)
    assert look(new, now=APPEARING - 1).gone == ()
    assert look(new, now=APPEARING).gone == (("i-1", "the provider never listed it"),)


def test_a_machine_that_no_node_has_is_ended() -> None:
    """Not at once: the answer to its launch may be on its way."""
    orphan = Instance(id="i-2", node=0, provider="x")
    found = look(SEEN, RUNNING, orphan)
    assert (found.orphans, found.unwanted) == ((Orphan("i-2", 1.0),), ())
    found = look(SEEN, RUNNING, orphan, orphans=found.orphans, now=1.0 + ORPHANED_FOR)
    assert found.unwanted == ("i-2",)
    assert look(SEEN, RUNNING, orphans=found.orphans, now=99.0).orphans == ()
    assert look(SEEN, RUNNING, orphan, held={"i-2"}).orphans == ()


@pytest.mark.parametrize(
    ("tags", "awaited"),
    [
        (Tags(pool_id="a", token="t"), True),
        (Tags(pool_id="a", token="u"), False),
        (Tags(pool_id="a"), True),
        (None, True),
    ],
)
def test_what_a_launch_under_way_rents_is_no_stray(tags: Tags | None, awaited: bool) -> None:
    """What does not say by which request it was rented may be of any."""
    machine = Instance(id="i-2", node=0, provider="x", tags=tags)
    assert (look(SEEN, RUNNING, machine, under_way={"t"}).orphans == ()) is awaited


def test_what_is_ending_is_no_stray() -> None:
    """It was told to end already."""
    assert look(SEEN, RUNNING, Instance(id="i-2", node=0, provider="x", state=InstanceState.ENDING)).orphans == ()


def test_what_a_machine_does_on_its_way_is_told_once() -> None:
    """Each thing when it begins; a list that says nothing of it changes nothing."""
    pulling = evolve(PENDING, doing="image pull")
    found = look(Known(id="i-1", since=0.0), pulling)
    assert (("i-1", "image pull"),) == found.busy
    assert () == look(found.known[0], pulling).busy
    assert () == look(look(found.known[0], PENDING).known[0], pulling).busy
    assert (("i-1", "start"),) == look(found.known[0], evolve(PENDING, doing="start")).busy
    assert () == look(found.known[0], evolve(RUNNING, doing="start")).busy
