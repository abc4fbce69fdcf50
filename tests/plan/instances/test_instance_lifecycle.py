"""
The life of instances: what each fault that concerns one means for the table, event by event, without a host.

The names of the faults are those of `docs/faults.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from attrs import evolve

from skyward.model.instances.machine import Instance, InstanceState, SSHAddress
from skyward.model.instances.tags import Tags
from skyward.plan.instances import instance_events as events
from skyward.plan.instances.instance_events import Command, Event
from skyward.plan.instances.instance_lifecycle import REMEMBERED, step, unended
from skyward.plan.instances.instance_list import APPEARING, LATE, ORPHANED_FOR, look_until
from skyward.plan.instances.instance_record import InstanceTable, Phase

PATIENCE = 300.0
FAULTS = (Path(__file__).parents[3] / "docs" / "faults.md").read_text(encoding="utf-8")

Step = tuple[Event, str]
"""An event, and what is to be done about it, one word for each command and instance."""


def row(name: str, state: str = "running", *, node: int = 0, token: str | None = "t") -> Instance:
    """List an instance; without a token its tags cannot be read."""
    return Instance(
        id=name,
        node=node,
        provider="x",
        state=InstanceState(state),
        address=SSHAddress(host="10.0.0.1") if state == "running" else None,
        tags=None if token is None else Tags(pool_id="a1", token=token),
    )


def asked(at: float, token: str = "t", nodes: Sequence[int] = (0,)) -> Event:
    """Ask for instances."""
    return events.LaunchRequested(token=token, cloud="a1", nodes=tuple(nodes), rate=0.5, at=at)


def answer(at: float, *rows: Instance, token: str = "t") -> Event:
    """Answer a launch."""
    return events.LaunchAnswered(token=token, instances=rows, at=at)


def lost(at: float, token: str = "t") -> Event:
    """Lose the answer to a launch."""
    return events.LaunchUnanswered(token=token, at=at)


def refused(at: float, token: str = "t") -> Event:
    """Refuse a launch."""
    return events.LaunchRefused(token=token, at=at)


def listed(at: float, *rows: Instance) -> Event:
    """List instances."""
    return events.Listed(cloud="a1", instances=rows, at=at, patience=PATIENCE)


def ready(name: str = "a") -> Event:
    """Have a node take calls."""
    return events.BecameReady(("x", name))


def drains(name: str = "a") -> Event:
    """Have an instance be reclaimed soon."""
    return events.Reclaimed(("x", name))


def lingers(name: str = "a") -> Event:
    """Have a node leave its instance to the next pool."""
    return events.Lingers(("x", name))


def released(name: str = "a") -> Event:
    """Have a node be done with its instance."""
    return events.Released(("x", name))


def ended(*names: str) -> Event:
    """Confirm the end of instances."""
    return events.Terminated(tuple(("x", name) for name in names or ("a",)))


def shut_down(name: str = "a") -> Event:
    """Refuse to terminate an instance, which is asked to shut itself down."""
    return events.TerminationRefused(("x", name), "You may not.")


def failed(*names: str) -> Event:
    """Fail to terminate instances."""
    return events.TerminationFailed(tuple(("x", name) for name in names or ("a",)), "You may not.")


LEFT = events.CloudLeft("a1")
PENDING, RUNNING = row("a", "pending"), row("a")
BOOTED: list[Step] = [(asked(0), ""), (answer(1, PENDING), "assign:a"), (listed(2, RUNNING), "began:a")]
WORKS: list[Step] = [*BOOTED, (ready(), "")]
GIVEN_BACK: list[Step] = [(released(), "terminate:a"), (ended(), "")]
CLOSED: list[Step] = [(LEFT, ""), (listed(900), "")]

LIVES: dict[str, list[Step]] = {
    # Launches.
    "no capacity in one zone": [(asked(0, "s"), ""), (refused(1, "s"), ""), *WORKS, *GIVEN_BACK, *CLOSED],
    "no capacity anywhere": [(asked(0), ""), (refused(1), ""), *CLOSED],
    "quota": [(asked(0, nodes=(0, 1)), ""), (refused(1), ""), *CLOSED],
    "a listing is gone, twice": [
        *((event, "") for token in "rs" for event in (asked(0, token), refused(0, token))),
        *WORKS,
        *GIVEN_BACK,
    ],
    "the answer to a launch is cut off": [
        # It was asked for once more with the same token, while lists show what the first attempt rented.
        (asked(0), ""),
        (listed(2, PENDING), ""),
        (listed(60, RUNNING), ""),
        (answer(61, RUNNING), "assign:a"),
        (listed(62, RUNNING), ""),
        *GIVEN_BACK,
        *CLOSED,
    ],
    "the answers to all launches are cut off": [
        (asked(0), ""),
        (lost(10), ""),
        (listed(11), ""),
        (listed(12, PENDING), "bill:a"),
        (listed(12 + ORPHANED_FOR, PENDING), "terminate:a"),
        (ended(), "end bill:a"),
        *CLOSED,
    ],
    "the answer to a launch is lost": [
        (asked(0), ""),
        (lost(1), ""),
        (LEFT, ""),
        (listed(2), ""),
        (listed(8, PENDING), "bill:a terminate:a"),
        (ended(), "end bill:a"),
        (listed(9, row("a", "ending")), ""),
    ],
    "the answer to a launch has no id": [
        # The provider finds by its tags what has no id in the answer; one more turned up and is no node's.
        (asked(0), ""),
        (answer(1, PENDING, row("b", "pending")), "assign:a bill:b"),
        (listed(2, RUNNING, row("b", token=None)), "began:a"),
        (listed(2 + ORPHANED_FOR, RUNNING, row("b", token=None)), "terminate:b"),
        (ended("b"), "end bill:b"),
        (listed(30, RUNNING), ""),
    ],
    "tags are refused": [
        # What bears no token may be of any launch whose answer is awaited, and is nobody's afterwards.
        (asked(0), ""),
        (listed(90, row("b", token=None)), ""),
        (answer(91, row("a", token=None)), "assign:a"),
        (listed(92, row("a", token=None), row("b", token=None)), "bill:b"),
        (listed(120, row("a", token=None), row("b", token=None)), "terminate:b"),
        (ended("b"), "end bill:b"),
    ],
    "every bid is too low, and leaves a contract": [
        (asked(0), ""),
        (refused(1), ""),
        (listed(2, row("a", "pending")), "bill:a"),
        (listed(2 + ORPHANED_FOR, row("a", "ending")), "terminate:a"),
        (ended(), "end bill:a"),
        *CLOSED,
    ],
    "the launch is taken, and fails": [
        # It never became a node, and is listed as ending: when in doubt, it is terminated.
        (asked(0), ""),
        (refused(1), ""),
        (listed(2, row("a", "ending")), "bill:a"),
        (listed(2 + ORPHANED_FOR, row("a", "ending")), "terminate:a"),
        (ended(), "end bill:a"),
    ],
    "lists trail launches by two seconds": [
        (asked(0), ""),
        (answer(1, PENDING), "assign:a"),
        (listed(1.5), ""),
        (listed(2.5), ""),
        (listed(3.5, RUNNING), "began:a"),
        (ready(), ""),
        *GIVEN_BACK,
        (LEFT, ""),
        (listed(5, RUNNING), ""),
    ],
    # Boots.
    "boots late": [
        (asked(0), ""),
        (answer(1, PENDING), "assign:a"),
        *((listed(at, PENDING), "") for at in (2, 100, 300)),
        (listed(301, RUNNING), "began:a"),
        (ready(), ""),
    ],
    "never boots": [
        (asked(0), ""),
        (answer(1, PENDING), "assign:a"),
        (listed(301, PENDING), ""),
        (listed(302, PENDING), "not running:a"),
        *GIVEN_BACK,
        *CLOSED,
    ],
    "the image is pulled late": [
        (asked(0), ""),
        (answer(1, PENDING), "assign:a"),
        (listed(2, evolve(PENDING, doing="image pull")), "busy:a"),
        (listed(3, evolve(PENDING, doing="image pull")), ""),
        (listed(4, PENDING), ""),
        (listed(5, RUNNING), "began:a"),
    ],
    "boots, but refuses SSH": [*BOOTED, (listed(400, RUNNING), ""), *GIVEN_BACK, *CLOSED],
    "boots with another host key": [*BOOTED, *GIVEN_BACK, *CLOSED],
    "dies at boot": [
        (asked(0), ""),
        (answer(1, PENDING), "assign:a"),
        (listed(2, row("a", "ended")), "gone:a"),
        *GIVEN_BACK,
        *CLOSED,
    ],
    "dies during bootstrap": [*BOOTED, (listed(9, row("a", "ended")), "gone:a"), *GIVEN_BACK, *CLOSED],
    "no capacity after the launch": [
        (asked(0), ""),
        (answer(1, PENDING), "assign:a"),
        (listed(2, row("a", "ending")), "gone:a"),
        *GIVEN_BACK,
    ],
    "never starts": [
        # It is in no list for as long as one may be missing.
        (asked(0), ""),
        (answer(1, PENDING), "assign:a"),
        (listed(APPEARING), ""),
        (listed(1 + APPEARING), "gone:a"),
        *GIVEN_BACK,
        *CLOSED,
    ],
    # Nodes that work.
    "spot machine taken during bootstrap": [*BOOTED, (listed(9, row("a", "ending")), "gone:a"), *GIVEN_BACK],
    "spot machine taken during a task": [
        *WORKS,
        (drains(), ""),
        (asked(9, "u"), ""),
        (answer(10, row("b", token="u"), token="u"), "assign:b"),
        (listed(11, RUNNING, row("b", token="u")), ""),
        (listed(30, row("a", "ending"), row("b", token="u")), "gone:a"),
        *GIVEN_BACK,
    ],
    "spot machine taken during exit": [
        *WORKS,
        (released(), "terminate:a"),
        (listed(9, row("a", "ending")), ""),
        (listed(19, row("a", "ended")), ""),
        (ended(), ""),
        *CLOSED,
    ],
    "taken back": [*WORKS, (drains(), ""), (listed(9), ""), (listed(14), "gone:a"), *GIVEN_BACK],
    "deleted by somebody during a task": [*WORKS, (listed(9), ""), (listed(14), "gone:a"), *GIVEN_BACK, *CLOSED],
    "deleted by somebody during exit": [*WORKS, (released(), "terminate:a"), (listed(9), ""), (ended(), ""), *CLOSED],
    "the list of machines is HTML, twice": [*WORKS, (listed(40, RUNNING), ""), *GIVEN_BACK],
    "lists without instances, twice": [
        # One list in a row lacks it, the next has it: it is no more gone than before.
        *WORKS,
        *((listed(at, *rows), "") for at, rows in ((9, ()), (14, (RUNNING,)), (19, ()), (24, (RUNNING,)))),
    ],
    # Ends.
    "terminate fails twice": [*WORKS, (released(), "terminate:a"), (listed(9, RUNNING), ""), (ended(), "")],
    "terminate is cut off twice": [*WORKS, (released(), "terminate:a"), (ended(), ""), (listed(9, RUNNING), "")],
    "terminate is refused for good": [
        *WORKS,
        (released(), "terminate:a"),
        (shut_down(), ""),
        (listed(40, RUNNING), ""),
        (listed(80, RUNNING), ""),
        (ended(), ""),
        *CLOSED,
    ],
    "delete is refused until the pool was left": [
        *WORKS,
        (released(), "terminate:a"),
        (failed(), ""),
        (LEFT, ""),
        (listed(20, RUNNING), "terminate:a"),
        (ended(), "confirmed:a"),
        (listed(21, RUNNING), ""),
    ],
    "delete is refused three times, as it is being made": [
        *BOOTED,
        (released(), "terminate:a"),
        (failed(), ""),
        (listed(30, RUNNING), ""),
        (listed(30 + ORPHANED_FOR, RUNNING), "terminate:a"),
        (failed(), ""),
        (listed(60, RUNNING), "terminate:a"),
        (ended(), "confirmed:a"),
        *CLOSED,
    ],
    "an end is confirmed, and nothing is done": [
        *WORKS,
        *GIVEN_BACK,
        (listed(10, RUNNING), ""),
        (listed(10 + ORPHANED_FOR, RUNNING), "terminate:a"),
        (ended(), ""),
        (listed(40, row("a", "ending")), ""),
        *CLOSED,
    ],
    "stopped, and billed for its disk, during a task": [
        *WORKS,
        (listed(9, row("a", "ending")), "gone:a"),
        (released(), "terminate:a"),
        (failed(), ""),
        (listed(10, row("a", "ending")), ""),
        (listed(10 + ORPHANED_FOR, row("a", "ending")), "terminate:a"),
        (ended(), "confirmed:a"),
        *CLOSED,
    ],
}


def told(commands: Iterable[Command]) -> str:
    """Name commands and the instances that they are about."""
    words = {events.Assign: "assign", events.Surplus: "surplus", events.Bill: "bill"}
    lines = []
    for command in commands:
        match command:
            case events.Assign(instance) | events.Surplus(instance) | events.Bill(instance):
                lines.append(f"{words[type(command)]}:{instance.id}")
            case events.TerminateInstances(keys):
                lines.append(f"terminate:{','.join(name for _, name in keys)}")
            case events.NotRunning(key) | events.EndBill(key):
                lines.append(f"{'not running' if isinstance(command, events.NotRunning) else 'end bill'}:{key[1]}")
            case _:
                lines.append(f"{type(command).__name__.lower()}:{command.key[1]}")
    return " ".join(lines)


def lived(*steps: Step) -> InstanceTable:
    """Return what is known after some events, each of which asks for what it should."""
    table = InstanceTable()
    for number, (event, expected) in enumerate(steps):
        table, commands = step(table, event)
        assert expected == told(commands), f"event {number}, {event}"
    return table


@pytest.mark.parametrize("fault", LIVES)
def test_each_fault_is_lived_through(fault: str) -> None:
    """Each event asks for what is written beside it; afterwards nothing is left but what works."""
    assert f"| {fault} |" in FAULTS
    table = lived(*LIVES[fault])
    left = {record.phase for record in table.instances.records()}
    assert left <= {Phase.RUNNING, Phase.READY, Phase.TERMINATED}
    if table.closing:
        assert {} == unended(table, "a1")


def phase(*steps: Step, name: str = "a") -> Phase | None:
    """Return what an instance is about after some events; None if it is forgotten."""
    record = lived(*steps).instances.get(("x", name))
    return None if record is None else record.phase


ORPHAN: list[Step] = [(listed(0, row("a")), "bill:a")]
WAYS: dict[Phase, tuple[list[Step], dict[Phase | None, list[Step]]]] = {
    Phase.PENDING: (
        BOOTED[:2],
        {
            Phase.RUNNING: [(listed(2, RUNNING), "began:a")],
            Phase.READY: [(ready(), "")],
            Phase.DRAINING: [(drains(), "")],
            Phase.TERMINATING: [(released(), "terminate:a")],
        },
    ),
    Phase.RUNNING: (
        BOOTED,
        {
            Phase.READY: [(ready(), "")],
            Phase.DRAINING: [(drains(), "")],
            Phase.TERMINATING: [(released(), "terminate:a")],
        },
    ),
    Phase.READY: (
        WORKS,
        {
            Phase.DRAINING: [(drains(), "")],
            Phase.LINGERING: [(lingers(), "")],
            Phase.TERMINATING: [(released(), "terminate:a")],
        },
    ),
    Phase.LINGERING: (
        [*WORKS, (lingers(), ""), (LEFT, ""), (listed(9, RUNNING), "")],
        {Phase.TERMINATING: [(released(), "terminate:a")]},
    ),
    Phase.DRAINING: ([*WORKS, (drains(), "")], {Phase.TERMINATING: [(released(), "terminate:a")]}),
    Phase.TERMINATING: (
        [*WORKS, (released(), "terminate:a")],
        {
            Phase.TERMINATED: [(ended(), "")],
            Phase.UNCONFIRMED: [(failed(), "")],
        },
    ),
    Phase.UNCONFIRMED: (
        [*WORKS, (released(), "terminate:a"), (failed(), "")],
        {
            Phase.TERMINATED: [(ended(), "confirmed:a")],
            None: [(listed(9, row("a", "ended")), "confirmed:a")],
            Phase.TERMINATING: [(LEFT, ""), (listed(9, RUNNING), "terminate:a")],
        },
    ),
    Phase.ORPHANED: (
        ORPHAN,
        {
            Phase.TERMINATING: [(listed(ORPHANED_FOR, row("a")), "terminate:a")],
            None: [(listed(1), ""), (listed(2), "end bill:a")],
            Phase.RUNNING: [(asked(1), ""), (answer(2, RUNNING), "assign:a")],
        },
    ),
    Phase.TERMINATED: (
        [*WORKS, *GIVEN_BACK],
        {
            None: [(listed(9), ""), (listed(10), "")],
            Phase.TERMINATING: [(listed(9, RUNNING), ""), (listed(40, RUNNING), "terminate:a")],
        },
    ),
}


@pytest.mark.parametrize("before", WAYS, ids=lambda phase: phase.value)
def test_each_phase_of_an_instance_has_a_way_out(before: Phase) -> None:
    """By an event that comes by itself: a list, an answer, or the end of what was asked for."""
    steps, ways = WAYS[before]
    assert before is phase(*steps)
    assert set(ways) == {phase(*steps, *way) for way in ways.values()}


def test_each_phase_is_shown() -> None:
    """REQUESTED is one of launches, which have no ids yet: it ends with the answer, a refusal, or none."""
    assert {*WAYS, Phase.REQUESTED} == set(Phase)
    outcomes = [answer(1, PENDING), refused(1), lost(1)]
    ways = [step(step(InstanceTable(), asked(0))[0], outcome)[0].launches["t"].phase for outcome in outcomes]
    assert [Phase.PENDING, Phase.TERMINATED, Phase.UNCONFIRMED] == ways
    assert Phase.REQUESTED is step(InstanceTable(), asked(0))[0].launches["t"].phase


def test_launches_that_are_over_are_forgotten_in_time() -> None:
    """A pool that asks in vain for days holds those of the last minutes; one that is awaited stays."""
    table, _ = step(InstanceTable(), asked(0, token="awaited"))
    for number in range(1000):
        at, token = 60.0 * number, f"t{number}"
        table, _ = step(table, asked(at, token=token))
        table, _ = step(table, lost(at + 1, token=token) if number % 2 else refused(at + 1, token=token))
    assert {"awaited", "t999"} <= set(table.launches)
    assert len(table.launches) <= REMEMBERED / 60.0 + 2
    # Also where nothing is asked for any more.
    table, _ = step(table, listed(60_000.0 + REMEMBERED))
    assert {"awaited"} == set(table.launches)


@pytest.mark.parametrize("event", [ended(), failed(), shut_down(), drains(), ready(), released()], ids=str)
def test_what_is_confirmed_to_be_gone_stays_so(event: Event) -> None:
    """A second answer, or a late one, changes nothing."""
    table = lived(*WORKS, *GIVEN_BACK)
    assert (table.instances, ()) == (step(table, event)[0].instances, step(table, event)[1])


@pytest.mark.parametrize("event", [ended("z"), failed("z"), shut_down("z"), drains("z"), ready("z"), released("z")])
def test_what_is_not_known_changes_nothing(event: Event) -> None:
    """Of one that was forgotten an answer may still come."""
    assert (InstanceTable(), ()) == step(InstanceTable(), event)


def test_an_instance_whose_node_has_another_by_now_is_surplus() -> None:
    """The place was given up and asked for again; a place that is being drained is free."""
    twice: list[Step] = [(asked(0), ""), (asked(1, "u"), ""), (answer(2, RUNNING), "assign:a")]
    late = row("b", token="u")
    table = lived(*twice, (answer(3, late, token="u"), "surplus:b"), (released("b"), "terminate:b"), (ended("b"), ""))
    assert [("a", Phase.RUNNING), ("b", Phase.TERMINATED)] == sorted((r.id, r.phase) for r in table.instances.records())
    lived(*twice, (drains(), ""), (answer(3, late, token="u"), "assign:b"))


@pytest.mark.parametrize("confirmed", [True, False], ids=["after its end", "while its end is awaited"])
def test_a_host_is_rented_again_under_its_id(*, confirmed: bool) -> None:
    """Hosts keep their ids; a confirmation that comes late is that of the life before."""
    before: list[Step] = [*WORKS, (released(), "terminate:a"), *([(ended(), "")] if confirmed else [])]
    again: list[Step] = [(asked(50, "s"), ""), (answer(51, row("a", token=None), token="s"), "assign:a")]
    assert Phase.RUNNING is phase(*before, *again)
    assert Phase.READY is phase(*before, *again, (ended(), ""), (ready(), ""), (failed(), ""), (shut_down(), ""))
    assert Phase.TERMINATED is phase(*before, *again, (released(), "terminate:a"), (ended(), ""))


def test_a_host_that_lists_had_is_rented_later() -> None:
    """A spare host is listed although no node has it, and is there when one needs it."""
    spare = row("b", token=None)
    before: list[Step] = [*WORKS, (listed(3, RUNNING, spare), "bill:b"), (listed(30, RUNNING, spare), "terminate:b")]
    again: list[Step] = [(asked(50, "s", [1]), ""), (answer(51, row("b", node=1, token=None), token="s"), "assign:b")]
    assert Phase.RUNNING is phase(*before, *again, name="b")
    assert Phase.RUNNING is phase(*before, (ended("b"), "end bill:b"), *again, name="b")


def test_no_node_gets_two_instances_of_one_answer() -> None:
    """Nor one that was not asked for, nor one that is gone by now."""
    lived((asked(0, nodes=(0, 1)), ""), (answer(1, row("a"), row("b"), row("c", node=7)), "assign:a bill:b bill:c"))
    lived((asked(0), ""), (answer(1, row("a"), row("a")), "assign:a"))
    gone: list[Step] = [*ORPHAN, (listed(30, row("a")), "terminate:a")]
    lived(*gone, (asked(31), ""), (answer(32, row("a")), ""), (ended(), "end bill:a"))


def test_an_orphan_costs_what_its_launch_asked_for() -> None:
    """By its token; what no launch asked for, at a price that the list says."""
    table = lived((asked(0), ""), (lost(1), ""))
    _, commands = step(table, listed(2, row("a"), row("b", token="other")))
    assert [("a", 0.5), ("b", None)] == [
        (one.instance.id, one.rate) for one in commands if isinstance(one, events.Bill)
    ]


def test_what_is_left_is_named_with_its_reason() -> None:
    """While the pool works only that whose termination failed; once it leaves the cloud everything that may exist."""
    steps = [*WORKS, (asked(3, "u", (1,)), ""), (answer(4, row("b", token="u", node=1), token="u"), "assign:b")]
    table = lived(*steps, (released(), "terminate:a"), (shut_down(), ""))
    assert {"a": "You may not."} == unended(table, "a1")
    table, _ = step(table, LEFT)
    assert {"a": "You may not.", "b": "Its end is not confirmed."} == unended(table, "a1")
    assert {} == unended(table, "b2")


def test_a_pool_that_leaves_waits_for_lists_that_lag() -> None:
    """For what a lost answer, or an instance that no list had yet, may be."""
    assert None is look_until(lived(*WORKS, *GIVEN_BACK), "a1")
    assert 3 + LATE == look_until(lived((asked(0), ""), (lost(3), "")), "a1")
    unseen = lived((asked(0), ""), (answer(5, PENDING), "assign:a"), (released(), "terminate:a"), (failed(), ""))
    assert 5 + LATE == look_until(unseen, "a1")
    table, _ = step(step(unseen, LEFT)[0], listed(5))
    assert {"a": "You may not."} == unended(table, "a1")
    assert {} == unended(step(table, listed(5 + LATE))[0], "a1")


def test_clouds_are_told_apart() -> None:
    """A list of one cloud says nothing of another's instances, also where both are of one provider."""
    table = lived(*WORKS)
    other = events.Listed(cloud="b2", instances=(), at=9.0, patience=PATIENCE)
    assert (table, ()) == step(table, other)
    left, _ = step(table, events.CloudLeft("b2"))
    assert (left.instances, ()) == (step(left, listed(9, RUNNING))[0].instances, step(left, listed(9, RUNNING))[1])
