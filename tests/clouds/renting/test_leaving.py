"""On clouds whose machines end their own bill a pool is left, or outlives its client, and its lease ends the bill."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import skyward as sky
from skyward.engine.instances.detached_records import DETACHED
from tests.clouds.cloud import ROOT, Cloud
from tests.clouds.renting.dialect import Dialect, dialects
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(200)]

there = pytest.mark.parametrize(
    "dialect", [one for one in dialects() if one.name in ("aws", "runpod", "vastai")], ids=lambda each: each.name
)


@sky.function
def waits_for(path: str, value: int) -> int:
    """Return a value once there is a file."""
    while not Path(path).exists():
        time.sleep(0.05)
    return value


@pytest.fixture
def hosted(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cloud:
    """Give the cloud with real hosts, and a state of one's own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cloud.hosts(there=True)
    return cloud


def pool(cloud: Cloud, ttl: float = 60) -> sky.Compute:
    """Rent one machine."""
    return sky.Compute(
        provider=cloud.provider(), allocation="on-demand", ttl=ttl, console=False, logging=False, bootstrap_timeout=60
    )


def attach(name: str) -> sky.Compute:
    """Go on with a pool."""
    return sky.attach(name, console=False, logging=False)


@there
def test_a_pool_is_left_and_gone_on_with(dialect: Dialect, hosted: Cloud, tmp_path: Path) -> None:
    """Its machine is billed meanwhile, under the same id, and ends with the pool that is attached."""
    gate = tmp_path / "gate"
    with pool(hosted) as first:
        _ = first.run_async(waits_for(str(gate), 1))
        name = first.detach(lease=90)
    rented = [row["id"] for row in hosted.alive()]
    assert 1 == len(rented)
    gate.touch()
    with attach(name) as second:
        assert [1] == list(second.results())
        assert rented == [row["id"] for row in hosted.alive()]
    assert [] == hosted.alive()
    assert 1 == dialect.launches(hosted)


@there
def test_the_lease_ends_the_bill(dialect: Dialect, hosted: Cloud, tmp_path: Path) -> None:
    """Without any client, whatever runs there."""
    with pool(hosted) as first:
        _ = first.run_async(waits_for(str(tmp_path / "never"), 1))
        name = first.detach(lease=6)
    assert 1 == len(hosted.alive())
    until(lambda: not hosted.alive(), 90.0, what="its machine is billed on")
    until(lambda: time.time() > DETACHED.heads()[0].ends_at)
    with pytest.raises(sky.ConfigError, match="The lease of the detached pool"):
        attach(name)


_CLIENT = """
    import time
    import skyward as sky
    from tests.clouds.{name}.cloud import Cloud
    from tests.clouds.renting.test_leaving import waits_for

    provider = Cloud({url!r}, {folder!r}).provider()
    with sky.Compute(
        provider=provider, allocation="on-demand", ttl=3, lease={lease}, console=False, logging=False,
        bootstrap_timeout=60,
    ) as pool:
        call = pool.run_async(waits_for({gate!r}, 7))
        time.sleep(600)
"""


def killed(dialect: Dialect, cloud: Cloud, folder: Path, lease: float, ready: Callable[[], object]) -> None:
    """Have a client with a lease make a call, and kill it."""
    script, gate = folder / "main.py", str(folder / "gate")
    facts = {"name": dialect.name, "url": cloud.url, "folder": cloud.folder, "lease": lease, "gate": gate}
    script.write_text(textwrap.dedent(_CLIENT.format(**facts)))
    client = subprocess.Popen(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        # A guardian that holds them would be waited for.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(ready, 100.0, what="the call is not written down")
    finally:
        client.kill()
        client.wait()


def written(folder: Path) -> bool:
    """Return whether a client has written a call down."""
    return any(len(path.read_text().splitlines()) > 1 for path in (folder / "state" / "detached").glob("[!.]*.calls"))


@there
def test_a_pool_outlives_its_client_past_ttl(dialect: Dialect, hosted: Cloud, tmp_path: Path) -> None:
    """No guardian ends what has a lease, neither before another client is there nor then."""
    killed(dialect, hosted, tmp_path, 120.0, lambda: written(tmp_path))
    (about,) = DETACHED.heads()
    time.sleep(8.0)  # longer than `ttl`, and than a guardian waits
    assert 1 == len(hosted.alive())
    (tmp_path / "gate").touch()
    with attach(about.pool_id) as second:
        assert [7] == list(second.results())
        assert 1 == len(hosted.alive())
    assert [] == hosted.alive()


@there
def test_the_lease_of_a_dead_client_ends_the_bill(dialect: Dialect, hosted: Cloud, tmp_path: Path) -> None:
    """By the machine itself."""
    killed(dialect, hosted, tmp_path, 8.0, lambda: written(tmp_path))
    assert 1 == len(hosted.alive())
    until(lambda: not hosted.alive(), 90.0, what="its machine is billed on")
