"""Clients that are killed, and pools that another client goes on with: real machines, each result once, one owner."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.instances.detached_records import DETACHED
from skyward.engine.instances.owner_lock import owner_lives
from tests.hosts import Host
from tests.ssh.held_calls import process, waits_for
from tests.waiting import until
from tests.yard import ENDED, Yard

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@sky.function
def dies_at(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.02)
    os._exit(7)


@sky.function
def endless() -> Iterator[int]:
    while True:
        yield 1
        time.sleep(0.05)


def journalled(state: Path) -> list[list[Any]]:
    """Read the calls that a client has written down: id, node, lane, timeout, function, why lost."""
    # What is being written has a name with a dot before it.
    found = list((state / "detached").glob("[!.]*.calls"))
    return [json.loads(line) for line in found[0].read_text().splitlines()[1:]] if found else []


@contextlib.contextmanager
def client(provider: Yard, body: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a program that opens a pool, makes calls and waits for its death."""
    given = {"console": "silent", "logging": False, "ttl": 60, **options}
    text = f"""
import time
import skyward as sky
from tests.ssh.test_client_death import *
provider = Yard(hosts={provider.hosts!r}, key={provider.key!r}, books={provider.books!r},
                known_hosts={provider.known_hosts!r})
with sky.Compute(provider=provider, **{given!r}) as pool:
{textwrap.indent(textwrap.dedent(body), "    ")}
    print("there", flush=True)
    time.sleep(600)
"""
    program = subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "there\n"
        yield program
    finally:
        program.kill()
        program.wait()
        assert program.stdout is not None
        program.stdout.close()


def attach(name: str = "pool") -> sky.Compute:
    """Go on with a pool."""
    return sky.attach(name, console="silent", logging=False)


def test_the_calls_of_a_client_that_was_killed_have_their_results(
    yard: tuple[Yard, list[Host]], tmp_path: Path
) -> None:
    """What it had is not given once more; what ends without it, what runs and what waits at its node is, in order."""
    provider, _ = yard
    first, second = tmp_path / "first", tmp_path / "second"
    body = f"""
        assert process() >> pool
        early = pool.run_async(waits_for({str(first)!r}, 1))
        late = [pool.run_async(waits_for({str(second)!r}, value)) for value in (2,)]
    """
    with client(provider, body, concurrency=2, lease=90) as program:
        until(lambda: len(journalled(tmp_path / "state")) == 2, what="the calls are not written down")
        program.kill()
        program.wait()
    written = journalled(tmp_path / "state")
    first.touch()
    assert provider.rented() == ["box-0"]
    with attach() as pool:
        calls = pool.calls()
        assert [call.function for call in calls] == ["waits_for"] * 2, (written, [call.id for call in calls])
        assert calls[0].result(30) == 1
        second.touch()
        assert list(pool.results()) == [1, 2]
        assert process() >> pool
        assert provider.launched() == 1
    assert provider.rented() == []
    assert not list((tmp_path / "state" / "detached").iterdir())


def test_a_client_without_a_lease_leaves_nothing(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Its machines end after `ttl`, with what runs there, and nothing is written down."""
    provider, (host, _) = yard
    with client(provider, f"calls = pool.run_async(waits_for({str(tmp_path / 'never')!r}, 1))", ttl=4):
        assert not (tmp_path / "state" / "detached").exists()
    with pytest.raises(sky.ConfigError, match="No pool 'pool' is detached"):
        attach()
    until((host.base / "home" / ENDED).exists, 25.0, what="the machine is not ended")


def test_a_machine_outlives_ttl_and_ends_with_the_lease(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Its own watchdog ends it, whatever runs there."""
    provider, (host, _) = yard
    ended = host.base / "home" / ENDED
    with client(provider, f"call = pool.run_async(waits_for({str(tmp_path / 'never')!r}, 1))", ttl=3, lease=10):
        pass
    died = time.monotonic()
    until(ended.exists, 40.0, what="the machine is not ended")
    assert time.monotonic() - died > 8.0


def test_a_client_that_lives_keeps_its_pool(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Also while it is stopped, and whoever has a copy of what it wrote down: its machine has it, too."""
    provider, _ = yard
    gate = tmp_path / "gate"
    with client(provider, f"call = pool.run_async(waits_for({str(gate)!r}, 1))", lease=90) as program:
        (about,) = DETACHED.heads()
        with pytest.raises(sky.ConfigError, match="has a client, which lives"):
            attach()
        (tmp_path / "state" / "detached" / f"{about.pool_id}.lock").unlink()
        with pytest.raises(sky.ConfigError, match="has a client that lives"), attach():
            pass
        program.send_signal(signal.SIGSTOP)
        with pytest.raises(sky.ConfigError, match="has a client that lives"), attach():
            pass
        program.send_signal(signal.SIGCONT)
    gate.touch()
    until(lambda: not owner_lives(about.pool_id), what="the lock is not released")
    with attach() as pool:
        assert list(pool.results()) == [1]
    assert provider.rented() == []


def test_of_two_that_attach_one_has_it(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Also when it is killed in its turn: the next one goes on with what that had not used."""
    provider, _ = yard
    gate = tmp_path / "gate"
    with client(provider, f"call = pool.run_async(waits_for({str(gate)!r}, 1))", lease=90):
        until(lambda: journalled(tmp_path / "state"), what="the call is not written down")
    rival = attach()
    text = """
import time
from tests.ssh.test_client_death import *
with attach() as pool:
    print(len(pool.calls()), flush=True)
    time.sleep(600)
"""
    program = subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    try:
        assert program.stdout is not None
        assert program.stdout.readline() == "1\n"
        with pytest.raises(sky.ConfigError, match="has a client that lives"), rival:
            pass
    finally:
        program.kill()
        program.wait()
        assert program.stdout is not None
        program.stdout.close()
    gate.touch()
    with attach() as pool:
        assert [call.function for call in pool.calls()] == ["waits_for"]
        assert list(pool.results()) == [1]
    assert provider.launched() == 1
    assert provider.rented() == []


def test_each_result_comes_once(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Of a client that is killed among short calls: what it had is none of the next one's, the rest is there."""
    provider, _ = yard
    had = tmp_path / "had"
    body = f"""
        futures = [pool.run_async(waits_for("/", value)) for value in range(100)]
        futures += [pool.run_async(waits_for({str(tmp_path / "gate")!r}, value)) for value in range(100, 120)]
        file = open({str(had)!r}, "w")
        for future in futures[:60]:
            print(future.result(), file=file, flush=True)
        time.sleep(0.3)  # until its nodes know that it has them
    """
    with client(provider, body, nodes=2, lease=90):
        pass
    (tmp_path / "gate").touch()
    before = set(map(int, had.read_text().split()))
    with attach() as pool:
        got = list(pool.results(return_exceptions=True))
    values = [value for value in got if isinstance(value, int)]
    lost = [error for error in got if not isinstance(error, int)]
    assert len(values) == len(set(values))
    assert sorted(before) == list(range(60))
    assert not before & set(values)
    # What waited at the client is not there, and is told of; what nodes had is.
    assert all(isinstance(error, sky.NodeLostError) for error in lost)
    assert all("no node had it" in str(error) or "neither the call nor its result" in str(error) for error in lost)


def test_what_needed_its_client_is_told_of(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """A stream ends with its client, and a worker that died without one is its call's failure."""
    provider, _ = yard
    gate = tmp_path / "gate"
    body = f"""
        stream = endless() >> pool
        next(stream)
        call = pool.run_async(dies_at({str(gate)!r}))
    """
    with client(provider, body, nodes=2, lease=90):
        until(lambda: len(journalled(tmp_path / "state")) == 2, what="the calls are not written down")
    gate.touch()
    with attach() as pool:
        stream, died = pool.calls()
        with pytest.raises(sky.NodeLostError, match="it gave its items to the client that died"):
            stream.result(30)
        with pytest.raises(sky.WorkerDiedError, match="exited with code 7"):
            died.result(30)
        assert process() >> pool


@pytest.mark.parametrize("damage", ["cut off", "another version"])
def test_a_journal_that_cannot_be_read_is_set_aside(yard: tuple[Yard, list[Host]], tmp_path: Path, damage: str) -> None:
    """The nodes know by themselves which calls they have; what another version wrote stays where it is."""
    provider, _ = yard
    gate = tmp_path / "gate"
    with client(provider, f"call = pool.run_async(waits_for({str(gate)!r}, 7))", lease=90):
        until(lambda: journalled(tmp_path / "state"), what="the call is not written down")
    (path,) = (tmp_path / "state" / "detached").glob("[!.]*.calls")
    text = path.read_text()
    if damage == "cut off":
        path.write_text(text[: len(text) - 20])
    else:
        path.write_text(text.replace('"version": 1', '"version": 99'))
        with pytest.raises(sky.ConfigError, match="were written down by another version"), attach():
            pass
        path.unlink()
    gate.touch()
    with attach() as pool:
        assert [call.function for call in pool.calls()] == ["(unnamed)"]
        assert list(pool.results()) == [7]
    if damage == "cut off":
        # What it logs is not asked for: another test may have left the logger quiet.
        assert path.with_name(f"{path.name}.unusable").exists()


def test_where_nothing_can_be_written_down_machines_end_with_ttl(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """The pool is used as any other, and an event says it."""
    provider, _ = yard
    said: list[str] = []
    with sky.Compute(provider=provider, console="silent", logging=False, ttl=60, lease=90).on(
        sky.Error, lambda event: said.append(event.message)
    ) as pool:
        (host,) = [one for one in yard[1] if list((one.cache / "nodes").glob("*/linger"))]
        calls = tmp_path / "state" / "detached" / f"{DETACHED.heads()[0].pool_id}.calls"
        calls.unlink(missing_ok=True)
        calls.mkdir()
        assert waits_for("/", 1) >> pool == 1
        call = pool.run_async(waits_for(str(tmp_path / "gate"), 2))
        until(lambda: said, what="nothing is said")
        until(lambda: not list((host.cache / "nodes").glob("*/linger")), what="the node goes on without a client")
        (tmp_path / "gate").touch()
        assert call.result() == 2
        calls.rmdir()
    assert "end 60 s after this program does" in said[0]
    assert provider.rented() == []


def test_a_pool_that_would_not_end_is_not_opened_with_a_lease(yard: tuple[Yard, list[Host]]) -> None:
    """Before anything is rented."""
    provider, _ = yard
    with (
        pytest.raises(sky.ConfigError, match="ttl=0 disarms the watchdogs"),
        sky.Compute(provider=provider, console="silent", logging=False, ttl=0, lease=60),
    ):
        pass
    with (
        pytest.raises(sky.ConfigError, match="its nodes are processes of this program"),
        sky.Compute(provider=sky.Local(), console="silent", logging=False, lease=60),
    ):
        pass
    assert provider.launched() == 0


def test_an_interrupt_while_a_pool_is_detached_breaks_that_off(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """The pool is open, has its calls, and takes others; with a lease it is recorded as before."""
    provider, _ = yard
    gate, said = tmp_path / "gate", tmp_path / "said"
    body = f"""
        import signal, threading
        call = pool.run_async(waits_for({str(gate)!r}, 1))
        # A broadcast waits for the call before it, and cannot be sent to wait at a node.
        threading.Thread(target=lambda: waits_for("/", 2) @ pool, daemon=True).start()
        time.sleep(0.5)
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            pool.detach()
        except KeyboardInterrupt:
            Path({str(gate)!r}).touch()
            Path({str(said)!r}).write_text(f"{{pool.is_active}} {{call.result()}} {{waits_for('/', 3) >> pool}}")
    """
    with client(provider, body, lease=90):
        assert said.read_text() == "True 1 3"
        (about,) = DETACHED.heads()
        assert about.owned
    assert provider.rented() == ["box-0"]
    with attach() as pool:
        assert process() >> pool
    assert provider.rented() == []
