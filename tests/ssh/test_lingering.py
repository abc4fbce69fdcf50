"""Machines that wait for the next pool: reused in seconds, by one pool alone, and ended by themselves."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.engine.instances.lingering_records import lingering
from skyward.provider import boot_watchdogs
from tests.hosts import Host, environments
from tests.waiting import until
from tests.yard import ENDED, Yard

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@sky.function
def where() -> tuple[int, str]:
    return os.getpid(), os.environ["HOME"]


@sky.function
def leave_behind(path: str) -> None:
    subprocess.Popen(["sleep", "300"], start_new_session=True)
    Path("left-in-the-nodes-directory").write_text("secret")
    Path(path).write_text("elsewhere")


def pool(provider: Yard, **keywords: Any) -> sky.Compute:
    """Make a pool of it."""
    given: dict[str, Any] = {"console": "silent", "logging": False, "linger": 60, "ttl": 60, **keywords}
    return sky.Compute(provider=provider, **given)


def commands(host: Host) -> list[bytes]:
    """List what runs on a host, but for the pauses of watchdogs."""
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in host.processes() if Path(f"/proc/{pid}").exists()]
    return [line for line in lines if (line and not line.startswith(b"sleep\0")) or line.startswith(b"sleep\x00300")]


def test_the_next_pool_has_the_machine(yard: tuple[Yard, list[Host]]) -> None:
    """Nothing is rented again: the machine waits, is listed as such, and has a fresh worker."""
    provider, (host, _) = yard
    with pool(provider) as first:
        process, home = where() >> first
    assert provider.rented() == ["box-0"]
    assert [about.machines for about in lingering()] == [("box-0",)]
    assert provider.notes("release") == []
    with pool(provider) as second:
        again = where() >> second
    assert again[1] == home
    assert again[0] != process
    assert provider.launched() == 1
    assert provider.rented() == ["box-0"]
    with pool(provider, linger=0) as third:
        where() >> third
    assert provider.launched() == 1
    assert provider.rented() == []
    assert lingering() == []
    assert provider.notes("release") == provider.notes("open")
    # That of the last pool stays until the machine is gone; those before it were replaced.
    until(lambda: len(commands(host)) == 1, what="processes are left")
    assert b"watchdog.sh" in commands(host)[0]


def test_nothing_of_the_last_pool_is_there(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """While a machine waits, nothing runs or lies there but its watchdog and what is made of images."""
    provider, (host, _) = yard
    with pool(provider, image=sky.Image(env={"TOKEN": "of-the-first"})) as first:
        leave_behind(str(tmp_path / "elsewhere")) >> first
    (node,) = (host.cache / "nodes").iterdir()
    until(lambda: sorted(path.name for path in node.iterdir()) == ["lease", "linger", "watchdog.sh"])
    until(lambda: all(b"watchdog.sh" in words for words in commands(host)), what="something runs on")
    assert "of-the-first" not in "".join(path.read_text() for path in node.iterdir())


def test_another_image_is_another_pool(yard: tuple[Yard, list[Host]]) -> None:
    """The machine keeps waiting for its own kind, and the other pool rents."""
    provider, _ = yard
    with pool(provider) as first:
        where() >> first
    with pool(provider, image=sky.Image(env={"A": "1"}), linger=0) as second:
        where() >> second
    assert provider.launched() == 2
    assert provider.rented() == ["box-0"]


@pytest.mark.everything
def test_its_watchdog_ends_it_in_time(yard: tuple[Yard, list[Host]]) -> None:
    """Whatever clients do: no program is there."""
    provider, (host, _) = yard
    with pool(provider, linger=6, ttl=8) as first:
        where() >> first
    left = time.monotonic()
    until((host.base / "home" / ENDED).exists, 25.0, what="the machine is not ended")
    assert 5.0 < time.monotonic() - left < 20.0
    with pool(provider, linger=0, ttl=8) as second:
        where() >> second
    assert provider.launched() == 2


def reboot(host: Host) -> None:
    """Reboot a machine whose cloud runs at each boot what `cloud_config` says, once its watchdog can be found."""
    until(lambda: list(host.cache.glob("nodes/*/watchdog.sh")), what="the watchdog has no file")
    host.stop()
    host.sweep()
    env = {"HOME": str(host.base / "home"), "PATH": f"{host.base}/bin:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", boot_watchdogs("root")], check=True, env=env)
    host.start()


def test_its_watchdog_ends_it_after_a_reboot(yard: tuple[Yard, list[Host]]) -> None:
    """No later than `linger` seconds after that: the watchdog is back before the SSH server is."""
    provider, (host, _) = yard
    with pool(provider, linger=6, ttl=8) as first:
        where() >> first
    reboot(host)
    began = time.monotonic()
    until((host.base / "home" / ENDED).exists, 25.0, what="the machine is not ended")
    assert 5.0 < time.monotonic() - began < 20.0
    until(lambda: provider.rented() == [], what="the machine is billed")


def test_the_next_pool_has_a_machine_that_was_rebooted(yard: tuple[Yard, list[Host]]) -> None:
    """It waits as before, and ends with that pool."""
    provider, (host, _) = yard
    with pool(provider) as first:
        home = (where() >> first)[1]
    reboot(host)
    with pool(provider, linger=0) as second:
        assert (where() >> second)[1] == home
    assert provider.launched() == 1
    assert provider.rented() == []
    until(lambda: len(commands(host)) == 1, what="a watchdog is left")


@pytest.mark.everything
def test_of_two_programs_one_gets_it(yard: tuple[Yard, list[Host]]) -> None:
    """Both open at the same moment; the other rents."""
    provider, _ = yard
    with pool(provider) as first:
        where() >> first
    homes: list[str] = []

    def use() -> None:
        with pool(provider, linger=0) as mine:
            homes.append((where() >> mine)[1])
            together.wait(60)

    together = threading.Barrier(2)
    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(homes)) == 2
    assert provider.launched() == 2
    assert provider.rented() == []


def test_a_copy_of_what_is_written_down_gives_no_second_owner(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """The lock is on the machine itself."""
    provider, _ = yard
    with pool(provider) as first:
        where() >> first
    (record,) = (tmp_path / "state" / "lingering").iterdir()
    copied = record.read_bytes()
    with pool(provider, linger=0) as second:
        home = (where() >> second)[1]
        record.write_bytes(copied)
        record.chmod(0o600)
        with pool(provider, linger=0) as third:
            assert (where() >> third)[1] != home
        assert (where() >> second)[1] == home
    assert provider.launched() == 2
    assert provider.rented() == []


def test_what_machines_shared_is_released_once_they_have_ended(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """By the next pool at that provider: no program was there when the watchdog ended them."""
    provider, _ = yard
    with pool(provider) as first:
        where() >> first
    (record,) = (tmp_path / "state" / "lingering").iterdir()
    line, _, rest = record.read_bytes().partition(b"\n")
    record.write_bytes(json.dumps({**json.loads(line), "ends_at": time.time() - 1000}).encode() + b"\n" + rest)
    with pool(provider, linger=0) as second:
        where() >> second
        # Another client has it, by what is written on it.
        assert "box-0" in provider.rented()
    record.write_bytes(json.dumps({**json.loads(line), "ends_at": time.time() - 1000}).encode() + b"\n" + rest)
    record.chmod(0o600)
    provider.expire()
    with pool(provider, linger=0) as third:
        where() >> third
    assert provider.launched() == 3
    until(lambda: sorted(provider.notes("release")) == sorted(provider.notes("open")), what="its network is left")
    assert lingering() == []
    assert provider.rented() == []


def test_another_program_gets_it(yard: tuple[Yard, list[Host]]) -> None:
    """Of the same user."""
    provider, _ = yard
    script = textwrap.dedent(f"""
        import skyward as sky
        from tests.yard import Yard
        provider = Yard(hosts={provider.hosts!r}, key={provider.key!r}, books={provider.books!r},
                        known_hosts={provider.known_hosts!r})
        with sky.Compute(provider=provider, console="silent", logging=False, linger=60, ttl=60) as pool:
            print(sky.function(lambda: "there")() >> pool)
    """)
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2]
        )
        assert done.stdout == "there\n", done.stderr
    assert provider.launched() == 1
    with pool(provider, linger=0) as last:
        where() >> last
    assert provider.launched() == 1


def test_fewer_nodes_take_as_many_as_they_need(yard: tuple[Yard, list[Host]]) -> None:
    """The rest is terminated with the pool at the latest; more nodes rent what is missing."""
    provider, _ = yard
    with pool(provider, nodes=1) as first:
        where() >> first
    with pool(provider, nodes=2) as second:
        assert len(set(where() @ second)) == 2
    assert provider.launched() == 2
    assert sorted(provider.rented()) == ["box-0", "box-1"]
    with pool(provider, nodes=1, linger=0) as third:
        where() >> third
    assert provider.launched() == 2
    assert provider.rented() == []


def test_a_machine_that_is_gone_is_replaced(yard: tuple[Yard, list[Host]]) -> None:
    """One that does not answer costs the pool nothing but its time; its watchdog ends it."""
    provider, (host, _) = yard
    with pool(provider, linger=20) as first:
        where() >> first
    host.stop()
    with pool(provider, linger=0) as second:
        where() >> second
    assert provider.launched() == 2
    until(lambda: provider.rented() == [], 60.0, what="a machine that no pool reaches is left")
    assert [about.key for about in lingering()] == [""]


def test_a_pool_that_fails_lingers_too(yard: tuple[Yard, list[Host]]) -> None:
    """In the loop of editing and running, that is most of them."""
    provider, _ = yard
    with pytest.raises(KeyError, match="a bug"), pool(provider) as first:
        sky.function(lambda: {}["a bug"])() >> first
    assert provider.rented() == ["box-0"]
    with pool(provider, linger=0) as second:
        where() >> second
    assert provider.launched() == 1


def test_the_receipt_says_what_waiting_costs(yard: tuple[Yard, list[Host]]) -> None:
    """At most, and apart from what the pool has cost."""
    provider, _ = yard
    said: list[sky.InstanceLingers] = []
    with pool(provider, linger=100).on(sky.InstanceLingers, said.append) as first:
        where() >> first
    receipt = first.receipt
    assert receipt is not None
    assert (receipt.lingering, receipt.linger_s, receipt.linger_cost) == (1, 100.0, pytest.approx(0.1))
    assert receipt.total_cost < 0.1
    assert [(event.instance_id, event.cost) for event in said] == [("box-0", pytest.approx(0.1))]
    assert all(node.ended for node in receipt.nodes)


@pytest.mark.everything
def test_waiting_is_within_the_budget(yard: tuple[Yard, list[Host]]) -> None:
    """As long as it pays for; a pool whose machines would wait for more than it is not opened."""
    provider, _ = yard
    with pytest.raises(sky.BudgetExceededError, match="linger=600"), pool(provider, linger=600, budget=0.5):
        pass
    assert provider.launched() == 0
    with pool(provider, linger=100, budget=0.12) as first:
        where() >> first
    assert first.receipt is not None
    assert 10.0 < first.receipt.linger_s < 100.0


def test_what_cannot_be_written_down_does_not_linger(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """A full disk must not leave machines that no program finds."""
    provider, _ = yard
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    (state / "lingering").write_text("no directory")
    with pool(provider) as first:
        where() >> first
    assert provider.rented() == []


@pytest.mark.parametrize("damage", ["cut", "version", "garbage"])
def test_what_cannot_be_read_is_passed_over(yard: tuple[Yard, list[Host]], tmp_path: Path, damage: str) -> None:
    """The pool rents, and what another version wrote stays where it is."""
    provider, _ = yard
    with pool(provider) as first:
        where() >> first
    (record,) = (tmp_path / "state" / "lingering").iterdir()
    line, _, rest = record.read_bytes().partition(b"\n")
    if damage == "cut":
        record.write_bytes(line + b"\n" + rest[:50])
    elif damage == "version":
        record.write_bytes(json.dumps({**json.loads(line), "version": 99}).encode() + b"\n" + rest)
    else:
        record.write_bytes(b"\0\xff no json")
    with pool(provider, linger=0) as second:
        where() >> second
    assert provider.launched() == 2
    assert record.exists() == (damage != "cut")


def guarded(provider: Yard, state: Path, text: str) -> subprocess.Popen[str]:
    """Start a program whose client has a guardian."""
    script = textwrap.dedent(f"""
        import os, sys, time
        import skyward as sky
        import skyward.engine.guardian.guardian_client
        from tests.yard import GuardedYard
        # So long an empty list is not believed; a minute outside of tests.
        skyward.engine.guardian.guardian_client.APPEARING = 1.0
        provider = GuardedYard(hosts={provider.hosts!r}, key={provider.key!r}, books={provider.books!r},
                               known_hosts={provider.known_hosts!r})
        def pool(**options):
            return sky.Compute(provider=provider, console="silent", logging=False, **options)
    """)
    home = {"HOME": str(state.parent), "SKYWARD_STATE": str(state)}
    env = {**os.environ, **home, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-c", script + textwrap.dedent(text)]
    return subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)


def guardians(state: Path) -> list[int]:
    """List the guardians of clients with this state."""
    entry = f"\0HOME={state.parent}\0".encode()
    found = []
    for pid, environ in environments():
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            if entry in environ and b"skyward.engine.guardian.guardian_process" in words:
                found.append(pid)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("killed", [False, True])
def test_a_guardian_leaves_what_lingers(yard: tuple[Yard, list[Host]], tmp_path: Path, killed: bool) -> None:
    """Whether its client ends or is killed: the guardian goes, and the next program has the machine."""
    provider, _ = yard
    text = """
        with pool(linger=60, ttl=60) as first:
            sky.function(os.getpid)() >> first
            print("open", flush=True)
        print("left", flush=True)
        time.sleep(KILLED)
    """.replace("KILLED", "300" if killed else "0")
    with guarded(provider, tmp_path / "state", text) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "open\n"
        assert guardians(tmp_path / "state")
        assert client.stdout.readline() == "left\n"
        if killed:
            client.kill()
    until(lambda: not guardians(tmp_path / "state"), what="its guardian stays")
    assert provider.rented() == ["box-0"]
    text = """
        with pool(ttl=60) as second:
            print(sky.function(os.getpid)() >> second > 0, flush=True)
    """
    with guarded(provider, tmp_path / "state", text) as client:
        assert client.communicate(timeout=60)[0] == "True\n"
    assert provider.launched() == 1
    assert provider.rented() == []


@pytest.mark.slow
def test_a_guardian_ends_another_pool_and_leaves_what_lingers(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Of one client that is killed: it tells them apart."""
    provider, _ = yard
    text = """
        with pool(linger=60, ttl=60) as first:
            sky.function(os.getpid)() >> first
        with pool(image=sky.Image(env={"A": "1"}), ttl=5) as second:
            sky.function(os.getpid)() >> second
            print("both", flush=True)
            time.sleep(300)
    """
    with guarded(provider, tmp_path / "state", text) as client:
        assert client.stdout is not None
        assert client.stdout.readline() == "both\n"
        assert sorted(provider.rented()) == ["box-0", "box-1"]
        client.kill()
    until(lambda: provider.rented() == ["box-0"], what="the other machine stays, or none does")
    until(lambda: not guardians(tmp_path / "state"), what="its guardian stays")
    assert provider.rented() == ["box-0"]
