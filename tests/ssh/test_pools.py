"""A pool on real SSH hosts does what it does at home, and leaves the hosts as they were."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.hosts import Host, hosts
from tests.ssh.conftest import Site


@sky.function
def double(x: Any) -> Any:
    return x * 2


@sky.function
def pid() -> int:
    return os.getpid()


@sky.function
def numbers(count: int) -> Iterator[int]:
    yield from range(count)


@sky.function
def say(line: str) -> str:
    print(line, flush=True)
    return line


def _open(site: Site, **options: Any) -> sky.Compute:
    return sky.Compute(**{"provider": site.provider(), "console": "silent", "logging": False, "ttl": 60, **options})


def _until(condition: Callable[[], object], what: str, seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def _left(host: Host) -> list[str]:
    """List what is in the host's cache besides the cache itself."""
    nodes = host.cache / "nodes"
    return [path.name for path in nodes.iterdir()] if nodes.exists() else []


@pytest.mark.slow
def test_operators_do_what_they_do_at_home(two: Site) -> None:
    """Calls, broadcasts, groups, streams, maps, arrays, exceptions; and what is said of the way there is true."""
    import numpy as np

    steps: list[sky.BootstrapProgress] = []
    with _open(two, nodes=2).on(sky.BootstrapProgress, steps.append) as pool:
        assert double(4) >> pool == 8
        assert double(3) @ pool == [6, 6]
        assert (double(1) & double(2)) >> pool == (2, 4)
        assert list(numbers(5) >> pool) == [0, 1, 2, 3, 4]
        assert pool.map(double, range(200)) == list(range(0, 400, 2))
        array = np.arange(3_000_000)
        assert (double(array) >> pool == array * 2).all()
        assert (double(array) >> pool == array * 2).all()
        with pytest.raises(TypeError, match="unsupported operand"):
            double(None) >> pool
        infos = sky.function(sky.instance_info)() @ pool
        assert [info.node for info in infos] == [0, 1]
        assert [info.ip for info in infos] == [host.address for host in two.hosts]
        assert infos[0].provider == "ssh"
        assert infos[0].hostname
        assert infos[0].head_port > 0
        assert [info.ssh_port for info in infos] == [host.port for host in two.hosts]
        assert all(info.network_interface for info in infos)
    assert {(0, "agent"), (1, "agent")} <= {(event.instance.node, event.step) for event in steps if event.instance}
    for host in two.hosts:
        assert _left(host) == []
        _until(lambda host=host: not host.processes(), f"{host.processes()} are left")  # type: ignore[misc]


@pytest.mark.slow
def test_prepared_host_is_sent_nothing_again(site: Site) -> None:
    """Our own side is there already; the second start is quick."""
    with _open(site) as pool:
        assert double(1) >> pool == 2
    (runtime,) = (site.hosts[0].cache / "runtime").iterdir()
    made = runtime.stat().st_mtime_ns
    with _open(site) as pool:
        assert double(1) >> pool == 2
    assert [path.stat().st_mtime_ns for path in (site.hosts[0].cache / "runtime").iterdir()] == [made]


@pytest.mark.slow
def test_clean_empties_the_cache(site: Site) -> None:
    """Nothing of ours is left then."""
    with _open(site) as pool:
        assert double(1) >> pool == 2
    assert site.hosts[0].cache.exists()
    site.provider().clean()
    assert not site.hosts[0].cache.exists()


@pytest.mark.slow
def test_two_pools_share_a_host(site: Site) -> None:
    """Each has its own agent."""
    with _open(site) as one, _open(site) as other:
        assert pid() >> one != pid() >> other


@pytest.mark.slow
def test_calls_go_on_when_the_link_is_cut(site: Site) -> None:
    """Every result arrives once, and every line."""
    lines: list[str] = []
    with _open(site, concurrency=2) as pool:
        pool.on(sky.Log, lambda event: lines.append(event.line))
        assert say("first") >> pool == "first"
        before = pid() >> pool
        results = []
        for number, result in enumerate(pool.map(say, (f"line {i}" for i in range(1000)), stream=True)):
            results.append(result)
            if number % 100 == 50:
                site.hosts[0].cut()
        assert results == [f"line {i}" for i in range(1000)]
        assert pid() >> pool == before
    assert lines == ["first", *(f"line {i}" for i in range(1000))] or sorted(lines) == sorted(
        ["first", *(f"line {i}" for i in range(1000))]
    )


@pytest.mark.slow
def test_killed_agent_is_replaced(site: Site) -> None:
    """Its calls are tried again."""
    with _open(site) as pool:
        before = pid() >> pool
        _kill_agents(site.hosts[0])
        assert pid() >> pool != before


def _kill_agents(host: Host) -> None:
    for number in host.processes():
        # One that is listed may be gone.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if b"skyward.node.agent.agent_main" in Path(f"/proc/{number}/cmdline").read_bytes():
                os.kill(number, signal.SIGKILL)


@pytest.mark.slow
def test_server_that_forwards_no_sockets_is_reached_through_a_relay() -> None:
    """The pool does not notice."""
    with hosts(1, forwarding=False) as (made, key), _open(Site(made, key)) as pool:
        assert double(b"x" * 1_000_000) >> pool == b"x" * 2_000_000


@pytest.mark.slow
def test_dead_agent_is_noticed_at_once_behind_a_relay() -> None:
    """As where the server forwards sockets, and not when the lease is over."""
    lost: list[str] = []
    with hosts(1, forwarding=False) as (made, key):
        pool = _open(Site(made, key), ttl=600)
        pool.on(sky.InstancePreempted, lambda event: lost.append(event.reason))
        with pool:
            before = pid() >> pool
            _kill_agents(made[0])
            _until(lambda: lost, "nobody noticed that the agent is dead")
            assert "its agent ended" in lost[0]
            assert pid() >> pool != before


@pytest.mark.slow
def test_connection_of_a_relay_that_is_cut_is_made_anew() -> None:
    """Its agent lives, and goes on."""
    with hosts(1, forwarding=False) as (made, key), _open(Site(made, key)) as pool:
        before = pid() >> pool
        for _ in range(3):
            made[0].cut()
            assert pid() >> pool == before


@pytest.mark.slow
def test_prints_and_shell_variables_of_the_image(site: Site) -> None:
    """Both kinds of variables are there in the workers."""
    image = sky.Image(env={"PLAIN": "a 'b' $c"}, shell_vars={"COMPUTED": "echo $((6 * 7))"})
    read = sky.function(lambda name: os.environ[name])
    with _open(site, image=image) as pool:
        assert (read("PLAIN") & read("COMPUTED")) >> pool == ("a 'b' $c", "42")


@pytest.mark.slow
def test_nothing_is_left_when_the_client_is_killed(site: Site, tmp_path: Path) -> None:
    """The node ends itself within its lease."""
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(f"""
        import time
        import skyward as sky
        provider = sky.SSH([{site.provider().hosts[0]!r}], key={str(site.key)!r}, known_hosts={str(site.known_hosts)!r})
        with sky.Compute(provider=provider, console="silent", logging=False, ttl=6) as pool:
            sky.function(lambda: __import__("subprocess").Popen(["sleep", "1000"]).pid)() >> pool
            print("up", flush=True)
            time.sleep(1000)
        """)
    )
    client = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE)
    assert client.stdout is not None
    assert client.stdout.readline() == b"up\n"
    client.kill()
    client.wait()
    client.stdout.close()
    _until(lambda: not _left(site.hosts[0]), "the node's directory is left")
    _until(lambda: not site.hosts[0].processes(), "processes are left")


@pytest.mark.slow
def test_hosts_are_measured(site: Site) -> None:
    """Snapshots come over links too, after a cut as before."""
    heard: list[sky.Metrics] = []
    values: list[sky.Metric] = []
    image = sky.Image(metrics=[*sky.metrics.Default(interval=0.2), sky.metrics.Custom("answer", "echo 42", 0.2)])
    with _open(site, image=image).on(sky.Metrics, heard.append).on(sky.Metric, values.append):
        _until(lambda: heard and any(value.name == "answer" for value in list(values)), "measurements")
        site.hosts[0].cut()
        count = len(heard)
        _until(lambda: len(heard) > count + 1, "measurements after the cut")
    assert all(0 < one.memory_used_mb < one.memory_total_mb for one in heard)
    assert {42.0} == {value.value for value in values if value.name == "answer"}
