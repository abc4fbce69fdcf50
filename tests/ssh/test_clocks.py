"""A node whose clock is an hour off: leases, timeouts and the times of events stay right."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import textwrap
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

import skyward as sky
from tests.hosts import Host, hosts
from tests.seeds import some
from tests.ssh.conftest import Site

OFF = [pytest.param(3600, id="ahead"), pytest.param(-3600, id="behind")]

_SHIFT = """
import time
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + {off}
time.time_ns = lambda: _time_ns() + {off} * 10**9
"""


@frozen(kw_only=True)
class Seen(sky.SkywardEvent):
    clock: float


@sky.function
def see() -> None:
    print("seen", flush=True)
    sky.emit(Seen(clock=time.time()))


@sky.function
def work(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def _set_clock(host: Host, off: int) -> None:
    """Give a host a Python of its own, which reads another clock, and a `date` that does."""
    venv.create(host.base)
    (site,) = host.base.glob("lib/python*/site-packages")
    (site / "sitecustomize.py").write_text(_SHIFT.format(off=off))
    # What the tests of this client import is there too.
    (site / "tests.pth").write_text(sysconfig.get_path("purelib"))
    date = host.base / "bin" / "date"
    date.write_text(f'#!/bin/sh\nexec /bin/date --date "{off} seconds" "$@"\n')
    date.chmod(0o755)


@pytest.fixture(params=some("clocks", OFF))
def off(request: pytest.FixtureRequest) -> int:
    """Say by how many seconds the host's clock is ahead."""
    found: int = request.param
    return found


@pytest.fixture
def shifted(off: int) -> Iterator[Site]:
    """Run one host with such a clock."""
    with hosts(1) as (made, key):
        _set_clock(made[0], off)
        yield Site(made, key)


@pytest.mark.slow
def test_times_of_events_are_the_clients(shifted: Site, off: int) -> None:
    """Also of those that a task emits; work goes on beyond the lease, and a timeout comes when it should."""
    events: list[sky.SkywardEvent] = []
    began = time.time()
    pool = sky.Compute(provider=shifted.provider(), console="silent", logging=False, ttl=5, timeout=300)
    pool.on(sky.SkywardEvent, events.append)
    with pool:
        see() >> pool
        assert work(6) >> pool == 6
        asked = time.monotonic()
        with pytest.raises(TimeoutError):
            work(30).with_timeout(0.5) >> pool
        assert 0.5 <= time.monotonic() - asked < 25
    (seen,) = (event for event in events if isinstance(event, Seen))
    assert abs(seen.clock - began - off) < 60
    assert any(isinstance(event, sky.Log) for event in events)
    assert [event for event in events if not began <= event.at <= time.time()] == []
    assert [event.duration < 60 for event in events if isinstance(event, sky.TaskCompleted)] == [True] * 3


@pytest.mark.slow
def test_lease_ends_when_it_should(shifted: Site, tmp_path: Path) -> None:
    """Neither an hour early nor an hour late."""
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(f"""
        import time
        import skyward as sky
        provider = sky.SSH(
            [{shifted.provider().hosts[0]!r}], key={str(shifted.key)!r}, known_hosts={str(shifted.known_hosts)!r}
        )
        with sky.Compute(provider=provider, console="silent", logging=False, ttl=8) as pool:
            sky.function(lambda: None)() >> pool
            print("up", flush=True)
            time.sleep(1000)
        """)
    )
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == b"up\n"
        client.kill()
    deadline = time.monotonic() + 40
    while shifted.hosts[0].processes():
        assert time.monotonic() < deadline, "the node outlives its lease"
        time.sleep(0.05)
