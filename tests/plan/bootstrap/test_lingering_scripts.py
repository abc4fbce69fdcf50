"""How a node lingers and is claimed, run as it is run on machines."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.model.spec.image import Image
from skyward.plan.bootstrap.bootstrap_script import Ground, render
from skyward.plan.bootstrap.node_scripts import claim, linger, succeed
from tests.waiting import until

NAME = "pool-0"


class Machine:
    """A machine whose watchdog is there."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.node = cache / "nodes" / NAME
        self.ended = cache / "ended"
        self.node.mkdir(parents=True)
        (self.node / "lease").write_text("agent 1\n")
        (self.node / "secret").write_text("of a task")
        ground = Ground(cache=str(cache), node=str(self.node), runtime="r", token="t")
        end = ("touch", str(self.ended))
        script = render(Image(), (), ground, agent=("true",), ttl=60, life=None, end=end)
        body = script.split("cat <<'WATCHDOG'\n", 1)[1].split("\nWATCHDOG", 1)[0]
        path = self.node / "watchdog.sh"
        path.write_text(f"{body.replace('PAUSE=5', 'PAUSE=1')}\n")
        self.watchdog = subprocess.Popen(["sh", str(path), str(self.node)], start_new_session=True)
        # It has no command line for a moment, by which it is looked for.
        until(Path(f"/proc/{self.watchdog.pid}/cmdline").read_bytes)

    def run(self, script: str) -> int:
        """Run a script there."""
        env = {**os.environ, "SKYWARD_CACHE": str(self.cache)}
        return subprocess.run(["sh", "-c", script], env=env, check=False, timeout=30).returncode


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Start one."""
    made = Machine(tmp_path)
    yield made
    made.watchdog.kill()
    made.watchdog.wait()


def test_nothing_is_left_but_the_time_and_the_watchdog(machine: Machine) -> None:
    """What the node's directory held is gone; the watchdog writes its file again, for a boot to start it from."""
    before = (machine.node / "watchdog.sh").read_text()
    assert machine.run(linger(NAME, 60.0)) == 0
    left = ["lease", "linger", "watchdog.sh"]
    until(lambda: sorted(path.name for path in machine.node.iterdir()) == left)
    assert before == (machine.node / "watchdog.sh").read_text()
    assert machine.watchdog.poll() is None


def test_nothing_lingers_without_its_watchdog(machine: Machine) -> None:
    """Nothing would end the machine."""
    machine.watchdog.kill()
    machine.watchdog.wait()
    assert machine.run(linger(NAME, 60.0)) == 5


def test_one_pool_claims_it(machine: Machine) -> None:
    """The second one is refused, and so is one for a node that does not linger."""
    assert machine.run(claim(NAME, 60.0)) == 3
    assert machine.run(linger(NAME, 60.0)) == 0
    assert [machine.run(claim(NAME, 60.0)) for _ in range(2)] == [0, 4]


def test_of_many_at_once_one_claims_it(machine: Machine) -> None:
    """A directory is made by one of them."""
    assert machine.run(linger(NAME, 60.0)) == 0
    env = {**os.environ, "SKYWARD_CACHE": str(machine.cache)}
    rivals = [subprocess.Popen(["sh", "-c", claim(NAME, 60.0)], env=env) for _ in range(8)]
    assert sorted(rival.wait(30) for rival in rivals) == [0, *[4] * 7]


def test_the_watchdog_ends_it_in_time(machine: Machine) -> None:
    """And no pool claims it from then on."""
    assert machine.run(linger(NAME, 1.0)) == 0
    machine.watchdog.wait(30)
    assert machine.ended.exists()
    assert machine.run(claim(NAME, 60.0)) == 3


def test_a_claim_that_comes_to_nothing_ends_it_too(machine: Machine) -> None:
    """Its client may have died before its own watchdog was there."""
    assert machine.run(linger(NAME, 60.0)) == 0
    assert machine.run(claim(NAME, 1.0)) == 0
    machine.watchdog.wait(30)
    assert machine.ended.exists()


def test_a_claim_at_the_last_moment_keeps_the_machine(machine: Machine) -> None:
    """The watchdog sees that it is claimed before it sees the new time."""
    assert machine.run(linger(NAME, 3.0)) == 0
    time.sleep(2.5)
    claimed = machine.run(claim(NAME, 60.0)) == 0
    time.sleep(4.0)
    assert machine.ended.exists() != claimed


def test_the_next_node_removes_it_with_its_watchdog(machine: Machine) -> None:
    """Its own watchdog is there then."""
    assert machine.run(linger(NAME, 60.0)) == 0
    assert machine.run(claim(NAME, 60.0)) == 0
    assert machine.run(succeed(NAME)) == 0
    machine.watchdog.wait(30)
    assert not machine.node.exists()
    assert not machine.ended.exists()
