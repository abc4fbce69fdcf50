"""How often a prepared host is waited for until a pool on it is open, and left."""

from __future__ import annotations

import gzip
import subprocess
import time
from pathlib import Path

import pytest

import skyward as sky
from skyward.ssh.follow import start_command
from tests.delayed import Delayed
from tests.simulated.crowd import crowd
from tests.ssh.conftest import Site

TRIPS = (2.0, 2.0, 2.5, 3.0, 3.0, 3.0)
"""Seconds of a round trip: long beside what a busy machine adds, and longer once that was not enough."""

ENTER, LEAVE = 8, 2


def times(site: Site, trip: float) -> tuple[float, float]:
    """Open a pool over a line, and leave it: the seconds for each; the host is logged in to once."""
    host = site.hosts[0]
    with Delayed(host.address, host.port, trip) as line:
        began = time.monotonic()
        with sky.Compute(
            provider=site.provider(hosts=[f"{host.address}:{line.port}"]),
            # The modules of all tests that were collected: beyond 250 KiB a program takes a round trip more.
            image=sky.Image(excludes=["*"]),
            console="silent",
            logging=False,
            ttl=60,
        ):
            entered = time.monotonic()
        left = time.monotonic()
        assert 1 == line.connections
    return entered - began, left - entered


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_prepared_host_is_opened_in_eight_round_trips_and_left_in_two(site: Site) -> None:
    """TCP's own is one of them; what a longer one adds is all that waits for the line. A busy machine only adds."""
    times(site, 0.0)
    near, far = (99.0, 99.0), list[tuple[float, tuple[float, float]]]()
    enter = leave = 99.0
    for trip in TRIPS:
        # The quickest of each: the slowest near one would hide round trips of the far one.
        near = tuple(map(min, near, times(site, 0.0)))
        far.append((trip, times(site, trip)))
        enter, leave = (min((slow[what] - near[what]) / trip for trip, slow in far) for what in (0, 1))
        if round(enter) <= ENTER and round(leave) <= LEAVE:
            break
    print(f"{enter:.2f} round trips to open, {leave:.2f} to leave")
    # Less than one more: what the processors of a busy machine add is no round trip.
    assert enter < ENTER + 1
    assert leave < LEAVE + 1


@pytest.mark.slow
def test_the_agent_calls_and_leaves_nothing_of_that_behind(site: Site) -> None:
    """The socket that its client waits at is gone as soon as it was used."""
    with sky.Compute(provider=site.provider(), console="silent", logging=False, ttl=60):
        nodes = site.hosts[0].cache / "nodes"
        assert [1, 0] == [len([*nodes.glob(name)]) for name in ("*-0-*", "*.in")]
    assert not nodes.exists()


@pytest.mark.slow
def test_fresh_machines_are_made_ready_side_by_side() -> None:
    """They are sent our side of a node as well; eight take hardly longer than one."""
    seconds = []
    for count in (1, 8):
        with crowd(count, prepares=2.0) as addresses:
            began = time.monotonic()
            with sky.Compute(provider=sky.SSH(addresses), nodes=count, console="silent", logging=False) as pool:
                assert count == pool.current_nodes()
                seconds.append(time.monotonic() - began)
    # One after the other they would take sixteen.
    assert seconds[1] < seconds[0] + 6.0


@pytest.mark.parametrize("sent", ["all", "half", "none"])
def test_a_script_that_is_cut_off_on_its_way_is_not_run(sent: str, tmp_path: Path) -> None:
    """And leaves no directory; what comes behind it is left to others."""
    node, script = tmp_path / "node", f"echo ran >{tmp_path}/ran\n".encode()
    packed = gzip.compress(script)
    given = {"all": packed + b"beat\n", "half": packed[: len(packed) // 2], "none": b""}[sent]
    command = f"begin() {{ {start_command(str(node), len(packed), len(script))} }}; begin && cat"
    done = subprocess.run(["sh", "-c", command], input=given, capture_output=True, check=False)
    assert (sent == "all") == (not done.returncode) == node.exists()
    if sent == "all":
        assert b"beat\n" == done.stdout
        deadline = time.monotonic() + 20
        while not (tmp_path / "ran").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
    else:
        assert not (tmp_path / "ran").exists()
