"""How a node is left to another client, claimed and resumed, run as it is run on machines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.plan.bootstrap.node_scripts import claim, detach, resume
from tests.plan.bootstrap.test_lingering_scripts import NAME, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Start one."""
    made = Machine(tmp_path)
    yield made
    made.watchdog.kill()
    made.watchdog.wait()


def test_all_of_the_node_stays(machine: Machine) -> None:
    """It goes on, with a time at which it ends."""
    assert machine.run(detach(NAME, 60.0)) == 0
    assert (machine.node / "secret").read_text() == "of a task"
    assert (machine.node / "linger").read_text() == "60\n"
    assert machine.watchdog.poll() is None


def test_nothing_is_left_without_its_watchdog(machine: Machine) -> None:
    """Nothing would end the machine."""
    machine.watchdog.kill()
    machine.watchdog.wait()
    assert machine.run(detach(NAME, 60.0)) == 5


def test_one_client_claims_it(machine: Machine) -> None:
    """Nodes of living clients are not to be had."""
    assert machine.run(claim(NAME, 60.0)) == 3
    assert machine.run(detach(NAME, 60.0)) == 0
    assert [machine.run(claim(NAME, 60.0)) for _ in range(2)] == [0, 4]


def test_it_is_left_again_after_it_was_resumed(machine: Machine) -> None:
    """What is on the machine is as before it was left."""
    for _ in range(2):
        assert machine.run(detach(NAME, 60.0)) == 0
        assert machine.run(claim(NAME, 60.0)) == 0
        assert machine.run(resume(NAME)) == 0
        assert sorted(path.name for path in machine.node.iterdir()) == ["lease", "secret", "watchdog.sh"]


def test_the_watchdog_ends_a_machine_that_no_client_claims(machine: Machine) -> None:
    """After its time, and not before."""
    left = time.monotonic()
    assert machine.run(detach(NAME, 3.0)) == 0
    machine.watchdog.wait(30)
    assert machine.ended.exists()
    assert time.monotonic() - left > 2.0


def test_a_resumed_node_is_not_ended_for_the_time_it_was_left(machine: Machine) -> None:
    """Its lease begins with its new client, however long it was left: the watchdog looks at both together."""
    assert machine.run(detach(NAME, 30.0)) == 0
    time.sleep(7.0)  # it has waited for longer than its client has to come
    assert machine.run(claim(NAME, 6.0)) == 0
    assert machine.run(resume(NAME)) == 0
    time.sleep(3.0)  # the watchdog has looked again
    assert machine.watchdog.poll() is None
    assert not machine.ended.exists()
