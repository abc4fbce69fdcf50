"""Pools that are left with their calls under way, and gone on with: real machines, each result once, one owner."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, field, frozen

import skyward as sky
from skyward.engine.instances.detached_records import DETACHED
from skyward.engine.instances.lingering_records import lingering
from skyward.hookspecs import ProviderFacts, hookimpl
from skyward.provider import boot_watchdogs
from tests.hosts import Host
from tests.seeds import seeds
from tests.ssh.held_calls import process, waits_for
from tests.waiting import until
from tests.yard import ENDED, Yard

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


@sky.function
def slow(seconds: float, value: int) -> int:
    time.sleep(seconds)
    print("said", value)
    return value


@sky.function
def fails() -> None:
    raise ValueError("as it must")


@sky.function
def large(path: str, size: int) -> bytes:
    while not Path(path).exists():
        time.sleep(0.02)
    return b"x" * size


def pool(provider: Any, **keywords: Any) -> sky.Compute:
    """Make a pool of it."""
    given: dict[str, Any] = {"console": "silent", "logging": False, "ttl": 60, **keywords}
    return sky.Compute(provider=provider, **given)


def attach(name: str) -> sky.Compute:
    """Go on with a pool."""
    return sky.attach(name, console="silent", logging=False)


def test_what_was_under_way_goes_on_and_has_its_results(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """One call ends while no client is there, one runs on, one waits behind it; each result comes once, in order."""
    provider, _ = yard
    gate = tmp_path / "gate"
    with pool(provider) as first:
        worker = process() >> first
        early = first.run_async(waits_for(str(gate), 1))
        _ = first.run_async(fails())
        _ = first.run_async(waits_for(str(gate), 2))
        name = first.detach(lease=60)
    assert not first.is_active
    with pytest.raises(sky.PoolClosedError, match=f"was detached; sky.attach\\('{name}'\\) has the result"):
        early.result()
    assert provider.rented() == ["box-0"]
    assert [(about.pool_id, about.calls) for about in DETACHED.heads()] == [(name, 3)]
    # What its machines share is released by another pool, if the lease ends first; none takes them.
    assert [(about.pool_id, about.key) for about in lingering()] == [(name, "")]
    gate.touch()
    with attach(name) as second:
        one, two, three = second.calls()
        assert [one.function, two.function, three.function] == ["waits_for", "fails", "waits_for"]
        assert one.result(30) == 1
        with pytest.raises(ValueError, match="as it must"):
            two.result(30)
        assert three.result(30) == 2
        assert DETACHED.heads() == []
        assert lingering() == []
        assert process() >> second == worker
    assert provider.rented() == []
    assert provider.launched() == 1
    assert provider.notes("release") == provider.notes("open") == [name]


def test_more_calls_than_slots_are_all_done_without_a_client(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """What waited at the client waits at the nodes, on both; none is lost, and none comes twice."""
    provider, _ = yard
    marks = tmp_path / "marks"
    marks.mkdir()

    @sky.function
    def note(value: int) -> int:
        time.sleep(0.02)
        (marks / f"{value}-{os.getpid()}").touch()
        return value

    with pool(provider, nodes=2) as first:
        for value in range(200):
            _ = first.run_async(note(value))
        name = first.detach(name="sweep")
    ran_here = 200 - DETACHED.heads()[0].calls
    until(lambda: len(list(marks.iterdir())) == 200, what="the nodes did not go on")
    with attach("sweep") as second:
        got = list(second.results())
        assert got == list(range(ran_here, 200)) or sorted(got) == sorted(set(got))
        assert len(got) == 200 - ran_here
        assert second.current_nodes() == 2
    assert len(list(marks.iterdir())) == 200
    assert name


def test_another_program_attaches(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """With a provider that it knows by its record alone."""
    provider, _ = yard
    gate = tmp_path / "gate"
    leave = f"""
        import skyward as sky
        from tests.yard import Yard
        from tests.ssh.test_detaching import large
        provider = Yard(hosts={provider.hosts!r}, key={provider.key!r}, books={provider.books!r},
                        known_hosts={provider.known_hosts!r})
        with sky.Compute(provider=provider, console="silent", logging=False, ttl=60) as pool:
            _ = pool.run_async(large({str(gate)!r}, 5 << 20))
            print(pool.detach(lease=90))
    """
    come = """
        import sys
        import skyward as sky
        with sky.attach(sys.argv[1], console="silent", logging=False) as pool:
            print([len(result) for result in pool.results()])
    """

    def program(text: str, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(text), *words],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[2],
        )
        assert not done.returncode, done.stderr
        return done.stdout.strip()

    name = program(leave)
    gate.touch()
    assert program(come, name) == f"[{5 << 20}]"
    assert provider.rented() == []


def test_lines_that_were_printed_meanwhile_are_shown(yard: tuple[Yard, list[Host]]) -> None:
    """Once, when another client is there."""
    provider, _ = yard
    said: list[str] = []
    with pool(provider) as first:
        _ = first.run_async(slow(0.5, 7))
        name = first.detach()
    with attach(name).on(sky.Log, lambda event: said.append(event.line)) as second:
        assert list(second.results()) == [7]
    assert said == ["said 7"]


def test_it_is_left_again_and_again(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """The ids of new calls are none of the old ones, and each client has those that are open."""
    provider, _ = yard
    gate = tmp_path / "gate"
    with pool(provider) as first:
        _ = first.run_async(waits_for(str(gate), 1))
        name = first.detach()
    with attach(name) as second:
        _ = second.run_async(waits_for(str(gate), 2))
        assert [call.done for call in second.calls()] == [False]
        assert second.detach() == name
        assert not second.is_active
    with attach(name) as third:
        assert [call.done for call in third.calls()] == [False, False]
        gate.touch()
        assert list(third.results()) == [1, 2]
    assert provider.launched() == 1
    assert provider.rented() == []


def test_the_lease_ends_the_machines(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Whatever runs there, and an attempt to attach says so."""
    provider, (host, _) = yard
    with pool(provider, ttl=8) as first:
        _ = first.run_async(waits_for(str(tmp_path / "never"), 1))
        name = first.detach(lease=6)
    left = time.monotonic()
    until((host.base / "home" / ENDED).exists, 25.0, what="the machine is not ended")
    assert 5.0 < time.monotonic() - left < 20.0
    with pytest.raises(sky.ConfigError, match=f"The lease of the detached pool '{name}' ended"):
        attach(name)


def test_the_lease_ends_a_machine_that_was_rebooted(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Its agent is not there any more, but its watchdog is, and what had finished is fetched until then."""
    provider, (host, _) = yard
    with pool(provider, ttl=8) as first:
        first.run_async(slow(0.0, 1)).result()
        _ = first.run_async(waits_for(str(tmp_path / "never"), 1))
        _ = first.detach(lease=6)
    host.stop()
    host.sweep()
    env = {"HOME": str(host.base / "home"), "PATH": f"{host.base}/bin:{os.environ['PATH']}"}
    subprocess.run(["sh", "-c", boot_watchdogs("root")], check=True, env=env)
    host.start()
    until((host.base / "home" / ENDED).exists, 25.0, what="the machine is not ended")


def test_a_pool_that_is_attached_lives_on_past_its_lease(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Its client is there, as that of any pool."""
    provider, (host, _) = yard
    with pool(provider, ttl=8) as first:
        _ = first.run_async(slow(12.0, 1))
        name = first.detach(lease=6)
    with attach(name) as second:
        assert list(second.results()) == [1]
        assert not (host.base / "home" / ENDED).exists()


def test_one_client_has_it(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """The second one is refused, also with a copy of what was written down: the lock is on the machine itself."""
    provider, _ = yard
    with pool(provider) as first:
        _ = first.run_async(slow(0.1, 1))
        name = first.detach()
    (record,) = (tmp_path / "state" / "detached").iterdir()
    copied = record.read_bytes()
    rival = attach(name)
    with attach(name) as second:
        with pytest.raises(sky.ConfigError, match=f"No pool '{name}' is detached"):
            attach(name)
        with pytest.raises(sky.ConfigError, match="is attached by another client already"), rival:
            pass
        record.write_bytes(copied)
        record.chmod(0o600)
        with pytest.raises(sky.ConfigError, match="is attached by another client already"), attach(name):
            pass
        assert list(second.results()) == [1]
    assert provider.launched() == 1


def test_calls_of_a_node_that_is_lost_meanwhile_say_so(yard: tuple[Yard, list[Host]]) -> None:
    """Those of the others have their results."""
    provider, (_, gone) = yard
    with pool(provider, nodes=2) as first:
        calls = [first.run_async(slow(0.1, value), target=value) for value in (0, 1)]
        name = first.detach()
    assert calls
    gone.stop()
    with attach(name) as second:
        zero, one = second.results(return_exceptions=True)
        lost = {0: zero, 1: one}
        (error,) = [value for value in lost.values() if isinstance(value, BaseException)]
        assert isinstance(error, sky.NodeLostError)
        assert "did not answer when the pool was attached" in str(error)
        assert second.current_nodes() == 1


def test_calls_of_an_agent_that_died_say_so(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Its machine is there, and so is what it had finished."""
    provider, (host, _) = yard
    gate = tmp_path / "gate"
    with pool(provider) as first:
        _ = first.run_async(waits_for(str(gate), 1))
        _ = first.run_async(waits_for(str(tmp_path / "never"), 2))
        name = first.detach()
    (node,) = (host.cache / "nodes").iterdir()
    gate.touch()
    until(lambda: [path for path in node.glob("results/*") if path.name[0] != "."], what="no result is on its disk")
    os.kill(int((node / "agent.pid").read_text()), 9)
    with attach(name) as second:
        ended, lost = second.calls()
        assert ended.result(30) == 1
        with pytest.raises(sky.NodeLostError, match="waits_for"):
            lost.result(30)


def test_own_machines_are_left_as_well(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """Nothing of them is billed, and their nodes end with the lease."""
    (_, (host, _)) = yard
    provider = sky.SSH([f"{host.address}:{host.port}"], key=yard[0].key, known_hosts=yard[0].known_hosts)
    gate = tmp_path / "gate"
    with pool(provider) as first:
        _ = first.run_async(waits_for(str(gate), 3))
        name = first.detach()
    gate.touch()
    with attach(name) as second:
        assert list(second.results()) == [3]
    until(lambda: not list((host.cache / "nodes").glob("*")), what="something of the node is left")


def test_what_needs_its_client_is_not_left(yard: tuple[Yard, list[Host]]) -> None:
    """A stream, a map, a pool without a watchdog: each says why, and the pool goes on."""
    provider, _ = yard

    @sky.function
    def endless() -> Iterator[int]:
        while True:
            yield 1
            time.sleep(0.1)

    with pool(provider) as first:
        stream: Any = endless() >> first
        assert next(stream) == 1
        with pytest.raises(sky.UsageError, match=r"1 streams are under way, of .*endless"):
            first.detach()
        stream.close()
        assert slow(0.0, 1) >> first == 1
    with pool(provider, ttl=0) as second, pytest.raises(sky.ConfigError, match="ttl=0 disarms the watchdogs"):
        second.detach()
    assert provider.rented() == []
    assert DETACHED.heads() == []


def test_a_secret_is_not_written_down(yard: tuple[Yard, list[Host]]) -> None:
    """A key that a program gives its provider stays in the program."""

    @frozen(kw_only=True)
    class Locked(Yard):
        token: str = field(repr=False)

    yard_ = yard[0]
    provider = Locked(hosts=yard_.hosts, key=yard_.key, books=yard_.books, known_hosts=yard_.known_hosts, token="hush")
    with pool(provider) as first, pytest.raises(sky.ConfigError, match="token= of its provider is a secret"):
        first.detach()
    assert DETACHED.heads() == []


def test_a_lease_is_within_the_budget(yard: tuple[Yard, list[Host]]) -> None:
    """A machine of 3.6 USD an hour is left for as long as 0.12 USD pay for, and its end."""
    provider, _ = yard
    with pool(provider, budget=0.12) as first:
        slow(0.0, 1) >> first
        name = first.detach(lease=3600)
    (about,) = DETACHED.heads()
    assert 5.0 < about.ends_at - about.since < 60.0
    assert first.receipt is not None
    assert first.receipt.linger_cost < 0.06
    with attach(name) as second:
        assert slow(0.0, 2) >> second == 2


def test_what_cannot_be_written_down_is_not_left(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """The pool goes on."""
    provider, _ = yard
    with pool(provider) as first:
        (tmp_path / "state" / "detached").write_text("no directory")
        with pytest.raises((OSError, sky.ConfigError)):
            first.detach()
        assert slow(0.0, 1) >> first == 1
    assert provider.rented() == []


@frozen
class Moody:
    """A plugin that lets no pool open as long as a file is there."""

    path: str

    @hookimpl
    def skyward_around_client(self, pool: sky.Pool, cluster: Any) -> Any:
        """Fail, or do nothing."""
        if Path(self.path).exists():
            raise RuntimeError("not in the mood")
        return contextlib.nullcontext()


def test_nodes_are_given_back_by_a_client_that_cannot_go_on(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """What failed is the client's own, and hours of work are not lost for that: the next attempt has all of it."""
    provider, _ = yard
    mood = tmp_path / "mood"
    with pool(provider, plugins=[Moody(str(mood))]) as first:
        first.run_async(slow(0.2, 5)).result()
        _ = first.run_async(slow(0.2, 6))
        _ = first.run_async(slow(0.2, 7))
        name = first.detach()
    mood.touch()
    with pytest.raises(sky.SkywardError, match="not in the mood"), attach(name):
        pass
    assert provider.rented() == ["box-0"]
    assert [about.pool_id for about in DETACHED.heads()] == [name]
    mood.unlink()
    with attach(name) as second:
        assert list(second.results()) == [6, 7]
    assert provider.launched() == 1
    assert provider.rented() == []


def test_a_machine_that_has_nothing_to_do_ends_before_its_lease(yard: tuple[Yard, list[Host]]) -> None:
    """Not while a call runs there, however long that takes, and not once another client is there."""
    provider, (host, _) = yard
    ended = host.base / "home" / ENDED
    with pool(provider) as first:
        _ = first.run_async(slow(8.0, 1))
        name = first.detach(lease=300, idle=3)
    time.sleep(5.0)  # longer than it may be idle, and the call runs
    assert not ended.exists()
    with attach(name) as second:
        assert list(second.results()) == [1]
        _ = second.run_async(slow(0.1, 2))
        second.detach(lease=300, idle=2)
    until(ended.exists, 30.0, what="an idle machine is not ended")


def test_a_call_that_was_left_can_be_stopped_and_runs_out_of_time(
    yard: tuple[Yard, list[Host]], tmp_path: Path
) -> None:
    """As any other; what waits behind it begins then."""
    provider, _ = yard
    with pool(provider) as first:
        _ = first.run_async(waits_for(str(tmp_path / "never"), 1))
        _ = first.run_async(waits_for(str(tmp_path / "never"), 2).with_timeout(1.0))
        _ = first.run_async(slow(0.0, 3))
        name = first.detach()
    with attach(name) as second:
        one, two, three = second.calls()
        assert one.future.cancel()
        with pytest.raises(sky.TaskTimeoutError, match="its timeout of 1 s"):
            two.result(30)
        assert three.result(30) == 3


@pytest.mark.parametrize("seed", seeds("clients that come and go", 3))
def test_each_result_comes_to_one_client(yard: tuple[Yard, list[Host]], seed: int) -> None:
    """However often the pool is left, and at whatever moment: none is lost, and none comes twice."""
    random_ = random.Random(seed)
    provider, _ = yard
    got: list[int] = []

    @sky.function
    def number(value: int) -> tuple[int, bytes]:
        time.sleep(random.random() * 0.02)
        return value, b"x" * random.choice([0, 100, 50_000, 3_000_000])

    with pool(provider, nodes=2) as first:
        futures = [first.run_async(number(value)) for value in range(300)]
        time.sleep(random_.random())
        name = first.detach()
    got += [future.result()[0] for future in futures if future.exception() is None]
    for last in (False, False, True):
        time.sleep(random_.random() * 0.5)
        with attach(name) as again:
            calls = again.calls()
            if last:
                assert all(call.future.exception(60) is None for call in calls)
            else:
                time.sleep(random_.random() * 0.5)
                again.detach()
        got += [call.result()[0] for call in calls if call.future.exception() is None]
    assert sorted(got) == list(range(300)), f"seed {seed}"


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_client_that_only_looks_uses_nothing_up(yard: tuple[Yard, list[Host]], tmp_path: Path, size: int) -> None:
    """What has arrived and was not asked for is the next client's, as is what was not used of that."""
    provider, _ = yard
    gate = tmp_path / "gate"
    gate.touch()
    with pool(provider) as first:
        for _ in range(3):
            _ = first.run_async(large(str(gate), size))
        _ = first.run_async(fails())
        name = first.detach()
    with attach(name) as second:
        calls = second.calls()
        until(lambda: all(call.done for call in calls), what="they have not arrived")
        assert calls[0].result() == b"x" * size
        second.detach()
    with pytest.raises(sky.PoolClosedError, match="was detached"):
        calls[1].result()
    assert calls[0].result() == b"x" * size
    with attach(name) as third:
        assert [call.function for call in third.calls()] == ["large", "large", "fails"]
        until(lambda: all(call.done for call in third.calls()), what="they are not there")
        third.detach()
    with attach(name) as fourth:
        *results, error = fourth.results(return_exceptions=True)
        assert results == [b"x" * size] * 2
        assert isinstance(error, ValueError)
    assert not list((tmp_path / "state" / "detached").iterdir())
    assert provider.launched() == 1


@frozen(kw_only=True)
class Deaf(Yard):
    """A yard that lists nothing as long as a file is there, and has a guardian for its machines."""

    ears: str

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: a host that boots does not end itself."""
        return evolve(super().skyward_facts(), ends_own_bill="running")

    @hookimpl
    async def skyward_instances(self, cluster: Any) -> Any:
        """List, or fail."""
        if os.path.exists(self.ears):  # noqa: ASYNC240  # one stat
            raise sky.ProvisionError("The yard does not hear.")
        return await super().skyward_instances(cluster)


def test_a_cloud_that_does_not_answer_costs_no_detached_machine(yard: tuple[Yard, list[Host]], tmp_path: Path) -> None:
    """What may be left besides is reported; a guardian, which would end all that the pool has, is dismissed."""
    ears, yard_ = tmp_path / "ears", yard[0]
    provider = Deaf(hosts=yard_.hosts, key=yard_.key, books=yard_.books, known_hosts=yard_.known_hosts, ears=str(ears))
    said: list[str] = []
    with pool(provider, shutdown_timeout=2).on(sky.Error, lambda event: said.append(event.message)) as first:
        _ = first.run_async(slow(0.1, 1))
        ears.touch()
        name = first.detach()
    assert any("may still exist at yard" in message for message in said)
    ears.unlink()
    time.sleep(2.0)  # a guardian that was not dismissed acts at once
    assert provider.rented() == ["box-0"]
    with attach(name) as second:
        assert list(second.results()) == [1]
    assert provider.rented() == []


@sky.function
def dies_at(path: str) -> None:
    while not Path(path).exists():
        time.sleep(0.02)
    os._exit(7)


def test_a_worker_that_dies_without_a_client_is_its_calls_failure(
    yard: tuple[Yard, list[Host]], tmp_path: Path
) -> None:
    """The call is not lost, and has failed; what waited behind it runs in the next worker, or says why not."""
    provider, _ = yard
    gate = tmp_path / "gate"
    with pool(provider) as first:
        worker = process() >> first
        _ = first.run_async(dies_at(str(gate)))
        name = first.detach()
    gate.touch()
    until(lambda: not Path(f"/proc/{worker}").exists(), what="the worker has not died")
    with attach(name) as second:
        (call,) = second.calls()
        with pytest.raises(sky.WorkerDiedError, match="exited with code 7"):
            call.result(30)
        assert process() >> second != worker
