"""
What a cloud's list of instances means: how often one may be missing, and what many cost to compare.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from attrs import evolve

from skyward.model.instances.machine import Instance, InstanceState, SSHAddress
from skyward.model.instances.tags import Tags
from skyward.plan.instances.instance_events import Began, Busy, Gone, Listed, NotRunning, TerminateInstances
from skyward.plan.instances.instance_list import APPEARING, MISSES, ORPHANED_FOR, take_list
from skyward.plan.instances.instance_record import InstanceMap, InstanceRecord, InstanceTable, LaunchAttempt, Phase

ADDRESS = SSHAddress(host="10.0.0.1")
PENDING = Instance(id="i-1", node=0, provider="x", state=InstanceState.PENDING)
RUNNING = Instance(id="i-1", node=0, provider="x", address=ADDRESS)
HOMELESS = Instance(id="i-1", node=0, provider="x", state=InstanceState.RUNNING)
ENDING = Instance(id="i-1", node=0, provider="x", state=InstanceState.ENDING, address=ADDRESS)
ENDED = Instance(id="i-1", node=0, provider="x", state=InstanceState.ENDED, address=ADDRESS)
NEW = InstanceRecord(provider="x", id="i-1", cloud="a1", phase=Phase.PENDING, since=0.0, node=0)
SEEN = evolve(NEW, phase=Phase.READY, listed=True)
KEY = ("x", "i-1")


def table_of(*records: InstanceRecord) -> InstanceTable:
    """Know some instances."""
    return InstanceTable(instances=InstanceMap(records))


def look(before: InstanceTable | InstanceRecord, *rows: Instance, now: float = 1.0) -> tuple[InstanceTable, list[Any]]:
    """List instances, and return what is known and to be done."""
    table = before if isinstance(before, InstanceTable) else table_of(before)
    after, commands = take_list(table, Listed(cloud="a1", instances=rows, at=now, patience=300.0))
    return after, list(commands)


@pytest.mark.parametrize("row", [PENDING, HOMELESS])
def test_an_instance_that_boots_is_waited_for(row: Instance) -> None:
    """It runs once it says so and has an address."""
    table, commands = look(NEW, row)
    assert ([], True) == (commands, table.instances[KEY].listed)
    table, commands = look(table, RUNNING)
    assert [Began(KEY, RUNNING)] == commands
    assert [] == look(table, RUNNING)[1]


def test_an_instance_that_takes_too_long_is_reported() -> None:
    """Whether it is listed or not; not one that was seen running."""
    assert [NotRunning(KEY)] == look(NEW, PENDING, now=301.0)[1]
    assert [] == look(SEEN, RUNNING, now=301.0)[1]


@pytest.mark.parametrize("row", [ENDING, ENDED])
@pytest.mark.parametrize("phase", [phase for phase in Phase if phase.of_node])
def test_an_instance_that_its_cloud_takes_is_gone(row: Instance, phase: Phase) -> None:
    """At once, because the warning is short; in each phase in which a node has it."""
    [command] = look(evolve(SEEN, phase=phase), row)[1]
    assert isinstance(command, Gone)
    assert command.reason.startswith("the provider ")


@pytest.mark.parametrize("row", [ENDING, ENDED])
def test_an_instance_whose_cloud_says_why_it_ended_is_gone_for_that_reason(row: Instance) -> None:
    """In one line, as part of a sentence."""
    why = evolve(row, reason="the image could\nnot be pulled.")
    assert [Gone(KEY, "the provider says: the image could not be pulled")] == look(SEEN, why)[1]


def test_an_instance_is_gone_when_lists_in_a_row_miss_it() -> None:
    """One list may come from a replica that lags; another that has it begins the count anew."""
    table, commands = look(SEEN)
    assert [] == commands
    assert [Gone(KEY, "the provider lists it no more")] == look(table)[1]
    table, _ = look(table, RUNNING)
    assert ([], 2) == (look(table)[1], MISSES)


def test_an_instance_that_was_just_rented_may_be_missing() -> None:
    """But not for ever."""
    assert [] == look(NEW, now=APPEARING - 1)[1]
    assert [Gone(KEY, "the provider never listed it")] == look(NEW, now=APPEARING)[1]


@pytest.mark.parametrize(
    ("tags", "awaited"),
    [
        (Tags(pool_id="a", token="t"), True),
        (Tags(pool_id="a", token="u"), False),
        (Tags(pool_id="a"), True),
        (None, True),
    ],
)
def test_what_an_awaited_launch_rents_is_no_orphan(tags: Tags | None, awaited: bool) -> None:
    """What does not say by which request it was rented may be of any."""
    launch = LaunchAttempt(token="t", cloud="a1", nodes=(1,), rate=0.0, phase=Phase.REQUESTED, at=0.0)
    orphan = Instance(id="i-2", node=0, provider="x", tags=tags)
    table, _ = look(table_of(SEEN).with_launch(launch), RUNNING, orphan)
    assert awaited is (("x", "i-2") not in table.instances)
    other = table_of(SEEN).with_launch(evolve(launch, cloud="b2"))
    assert ("x", "i-2") in look(other, RUNNING, orphan)[0].instances


@pytest.mark.parametrize("state", [one for one in InstanceState if one is not InstanceState.ENDED])
def test_an_orphan_is_terminated_after_its_time(state: InstanceState) -> None:
    """The answer to its launch may be on its way; it is terminated too where its cloud says that it is ending."""
    orphan = Instance(id="i-2", node=0, provider="x", state=state)
    table, _ = look(SEEN, RUNNING, orphan)
    table, commands = look(table, RUNNING, orphan, now=ORPHANED_FOR)
    assert [] == commands
    assert [TerminateInstances((("x", "i-2"),))] == look(table, RUNNING, orphan, now=1.0 + ORPHANED_FOR)[1]


def test_a_host_that_exists_without_a_pool_is_no_orphan() -> None:
    """Neither one that no node had, nor one that was drained: it is in lists for ever."""
    spare = Instance(id="h-2", node=1, provider="x", address=ADDRESS, rented=False)
    table, commands = look(SEEN, RUNNING, spare)
    assert ([KEY], []) == (list(table.instances), commands)
    had = evolve(RUNNING, rented=False)
    table, commands = look(evolve(SEEN, phase=Phase.TERMINATED, node=None), had)
    assert ([], []) == (list(table.instances), commands)


def test_what_an_instance_does_while_it_boots_is_reported_once() -> None:
    """Each thing when it begins; a list that says nothing of it changes nothing."""
    pulling = evolve(PENDING, doing="image pull")
    table, commands = look(NEW, pulling)
    assert [Busy(KEY, "image pull")] == commands
    assert [] == look(table, pulling)[1]
    assert [] == look(look(table, PENDING)[0], pulling)[1]
    assert [Busy(KEY, "start")] == look(table, evolve(PENDING, doing="start"))[1]
    assert [Began] == [type(one) for one in look(table, evolve(RUNNING, doing="start"))[1]]


def test_a_pool_that_leaves_terminates_all_that_is_listed() -> None:
    """At once and in the order of the list; not what was confirmed to be gone a moment ago, nor what lingers."""
    phases = [phase for phase in Phase if phase not in (Phase.REQUESTED, Phase.TERMINATED)]
    records = [evolve(SEEN, id=phase.value, phase=phase) for phase in phases]
    table = evolve(table_of(*records, evolve(SEEN, phase=Phase.TERMINATED)), closing=frozenset({"a1"}))
    names = ["stranger", *(phase.value for phase in phases if phase is not Phase.LINGERING)]
    rows = [evolve(ENDING, id=name) for name in (*names, "lingering")]
    _, commands = look(table, RUNNING, *rows)
    assert [TerminateInstances(tuple(("x", name) for name in names))] == [
        one for one in commands if isinstance(one, TerminateInstances)
    ]


def test_a_list_that_changes_nothing_keeps_the_records() -> None:
    """So that a look costs no more than a comparison."""
    table = table_of(SEEN, evolve(SEEN, id="i-2", phase=Phase.TERMINATING))
    after, _ = look(table, RUNNING)
    assert all(after.instances[key] is record for key, record in table.instances.items())


def seconds(count: int) -> float:
    """Return the least time that a list of so many instances, half of them new, takes to compare."""
    rows = tuple(evolve(RUNNING, id=f"i-{number}", node=number) for number in range(count))
    table = table_of(*(evolve(NEW, id=row.id, node=row.node) for row in rows[: count // 2]))
    took = []
    for _ in range(5):
        began = time.process_time()
        look(table, *rows)
        took.append(time.process_time() - began)
    return min(took)


def test_many_instances_take_time_in_proportion() -> None:
    """Eight times as many take about eight times as long, and thousands some hundredths of a second."""
    few, many = seconds(1000), seconds(8000)
    assert many <= 24 * few
    assert many <= 1.0
