"""The store of a pool's collections, in pools of real processes: one server on the head, until that is lost."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.node.store.server_search import NAMED
from tests.waiting import until


def _options(**changes: Any) -> dict[str, Any]:
    return {"console": "silent", "logging": False, **changes}


@sky.function
def add(name: str, n: int = 1) -> int:
    return int(sky.counter(name).increment(n))


@sky.function
def address() -> tuple[str, str, str, str]:
    from skyward.node.task.call_collections import _Address
    from skyward.node.task.task_context import owner

    context = owner()
    assert context is not None
    found = _Address(context)()
    return found.path, found.generation, found.task, found.holder


@sky.function
def fail_after(name: str) -> None:
    sky.queue(name).get(timeout=20)
    raise ValueError("not this one")


@sky.function
def take(name: str) -> Any:
    return sky.queue(name).get(timeout=20)


def _servers(marks: str) -> list[int]:
    """List the servers that run for a pool whose nodes bear a mark."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            line, environ = (path / "cmdline").read_bytes(), (path / "environ").read_bytes()
        except OSError:
            continue
        if b"valkey-server" in line and marks.encode() in environ:
            found.append(int(path.name))
    return found


def _mark(pool: sky.Pool) -> str:
    return f"SKYWARD_NODE={pool._running.provisioning.pool_id}-"


@pytest.mark.parametrize("executor", ["thread", "process"])
def test_tasks_of_every_executor_share_it_with_the_client(executor: str) -> None:
    """All nodes, processes and threads, and the program."""
    worker = sky.Worker(concurrency=2, executor=executor)
    with sky.Compute(**_options(nodes=2, worker=worker)) as pool:
        assert 40 == max(pool.map(add, ["n"] * 40))
        assert 40 == pool.counter("n").value
        assert 41 == sky.counter("n").increment()
        assert 1 == len({path for path, *_ in address() @ pool})


def test_nothing_is_started_before_it_is_used() -> None:
    """A pool that shares nothing has no server; one that does has one, which ends with it."""
    with sky.Compute(**_options(nodes=2)) as pool:
        mark = _mark(pool)
        pool.map(sky.function(abs), [1, 2])
        assert [] == _servers(mark)
        assert [1, 2] == sorted(add("n") @ pool)
        assert 1 == len(_servers(mark))
    until(lambda: not _servers(mark))


@sky.function(retries=1)
def twice() -> None:
    from skyward.node.task.call_collections import _Address
    from skyward.node.task.task_context import owner

    context = owner()
    assert context is not None
    found, attempts = _Address(context)(), sky.dict("attempts")
    attempts[len(attempts)] = (found.task, found.holder)
    if len(attempts) < 2:
        raise ValueError("again")


def test_retries_are_one_task_and_two_holders() -> None:
    """A counter can know what the first attempt has counted, and locks of the first are none of the second."""
    with sky.Compute(**_options()) as pool:
        twice() >> pool
        (first, one), (second, other) = (pool.dict("attempts")[number] for number in (0, 1))
        assert first == second
        assert one != other


def test_what_a_failed_task_has_taken_is_delivered_again() -> None:
    """And what one that ended well has taken is not."""
    with sky.Compute(**_options()) as pool:
        jobs = pool.queue("jobs")
        jobs.put("a")
        with pytest.raises(ValueError, match="not this one"):
            fail_after("jobs") >> pool
        assert "a" == take("jobs") >> pool
        assert 0 == len(jobs)


def test_outside_of_a_pool_it_is_said_what_is_missing() -> None:
    """Nothing is started."""
    for use in (lambda: sky.dict("d"), lambda: sky.barrier("b", 2), lambda: sky.lock("l")):
        with pytest.raises(sky.NoPoolError, match=r"no pool is open here\. Use them in a task"):
            use()


def test_a_pool_that_is_not_open_has_none() -> None:
    """Neither before nor afterwards."""
    pool = sky.Compute(**_options())
    with pytest.raises(sky.PoolClosedError, match="not open yet"):
        pool.dict("d")
    with pool:
        counter = pool.counter("n")
        assert 1 == counter.increment()
    with pytest.raises(sky.PoolClosedError, match="is closed"):
        pool.counter("n")
    with pytest.raises(sky.SkywardError):
        counter.increment()


def test_nodes_that_work_by_themselves_share_nothing() -> None:
    """The task and the client raise the same, and no server is started."""
    with sky.Compute(**_options(cluster=False)) as pool:
        mark = _mark(pool)
        with pytest.raises(sky.UsageError, match=r"cluster=False.*Leave cluster= out"):
            add("n") >> pool
        with pytest.raises(sky.UsageError, match=r"cluster=False.*Leave cluster= out"):
            pool.counter("n")
        assert [] == _servers(mark)


def test_bad_arguments_start_nothing() -> None:
    """They are refused first."""
    with sky.Compute(**_options()) as pool:
        mark = _mark(pool)
        for use in (
            lambda: pool.dict(""),
            lambda: pool.dict(7),  # type: ignore[arg-type]
            lambda: pool.set("s", consistency="weak"),  # type: ignore[arg-type]
            lambda: pool.queue("q", -1),
            lambda: pool.barrier("b", 0),
        ):
            with pytest.raises(sky.UsageError):
                use()
        assert [] == _servers(mark)


def test_a_machine_without_a_server_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task and the client raise the same; other tasks run on."""
    monkeypatch.setenv(NAMED, "/nowhere/valkey-server")
    with sky.Compute(**_options()) as pool:
        for use in (lambda: add("n") >> pool, lambda: pool.counter("n")):
            with pytest.raises(
                sky.ProvisionError, match=r"has no server .*/nowhere/valkey-server.*Install one: apt-get"
            ):
                use()
        assert 3 == sky.function(abs)(-3) >> pool


def test_a_killed_server_is_a_lost_store() -> None:
    """What holds collections of it raises; what begins later has a new, empty store."""
    with sky.Compute(**_options(nodes=2)) as pool:
        counter = pool.counter("n")
        assert 2 == max(add("n") @ pool)
        (server,) = _servers(_mark(pool))
        os.kill(server, signal.SIGKILL)
        with pytest.raises(sky.StoreLostError):
            counter.increment()
        assert [1, 2] == sorted(add("n") @ pool)


def test_the_loss_of_the_head_is_the_loss_of_the_store() -> None:
    """A task on another node that holds a collection gets the typed error, and the next ones a new store."""

    @sky.function
    def hold(ready: str) -> str:
        counter = sky.counter("n")
        counter.increment()
        Path(ready).touch()
        while True:
            counter.increment()

    @sky.function
    def die() -> None:
        os.kill(os.getppid(), signal.SIGKILL)

    with sky.Compute(**_options(nodes=2, retry_on_interruption=0)) as pool:
        add("n") @ pool
        ready = f"/tmp/skyward-test-{os.getpid()}"
        try:
            held = pool.run_async(hold(ready), target=1)
            until(lambda: os.path.exists(ready))
            with pytest.raises(sky.SkywardError):
                pool.run(die(), target=0)
            with pytest.raises(sky.StoreLostError):
                held.result(60)
        finally:
            Path(ready).unlink(missing_ok=True)
        until(lambda: pool.current_nodes() == 2, seconds=60.0)
        assert [1, 2] == sorted(add("n") @ pool)


def test_the_node_of_the_store_is_not_idle() -> None:
    """A smaller pool keeps it, and what is shared."""
    with sky.Compute(**_options(nodes=2)) as pool:
        add("n") @ pool
        pool.resize(1)
        until(lambda: pool.current_nodes() == 1)
        assert 3 == add("n") >> pool
