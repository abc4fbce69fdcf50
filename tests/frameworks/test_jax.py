"""
Real work with JAX on nodes of this machine, with gloo between their processes.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

import skyward as sky
from tests.frameworks.jax_work import killed_in_the_middle, summed, world
from tests.seeds import some

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(300)]

STATED = 15.0
"""Seconds within which a broadcast ends that lost a rank: docs/jax.md."""


@sky.function
def pmapped() -> float:
    """Sum the ranks' numbers as programs before shard_map do."""
    import jax
    import numpy as np

    mine = np.full(jax.local_device_count(), float(jax.process_index() + 1))
    return float(jax.pmap(lambda one: jax.lax.psum(one, "ranks"), axis_name="ranks")(mine)[0])


@sky.function
def one_raises(who: int) -> None:
    import jax

    if jax.process_index() == who:
        raise ValueError(f"rank {who} does not want to")
    summed()


@sky.function
def returns_early(who: int) -> None:
    """Return on one rank, and wait in a sum on the others."""
    import jax

    if jax.process_index() != who:
        summed()


@sky.function
def sleeps_in_a_loop(who: int) -> None:
    """Compute without end by itself on one rank, and wait in a sum on the others."""
    import jax
    import jax.numpy as jnp

    while jax.process_index() == who:
        float(jnp.ones(3).sum())
        time.sleep(0.01)
    summed()


@sky.function
def noted() -> dict[str, list[int]]:
    """Count what is seen of sums that are new, that are called again, that print, that look for NaN, and of others."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    from skyward_jax.executed import EXECUTED

    mesh = jax.make_mesh((jax.device_count(),), ("ranks",))
    everywhere = jax.make_array_from_process_local_data(
        NamedSharding(mesh, PartitionSpec("ranks")), np.ones(jax.local_device_count())
    )

    def printing(one: Any) -> Any:
        jax.debug.callback(lambda: None)
        return one.sum()

    again = jax.jit(lambda one: one.sum())
    prints = jax.jit(printing)
    here = jax.jit(lambda one: one.sum())

    def seen(do: Any) -> list[int]:
        counts = [EXECUTED.count()]
        for _ in range(3):
            jax.block_until_ready(do())
            counts.append(EXECUTED.count())
        return [after - before for before, after in pairwise(counts)]

    found = {"again": seen(lambda: again(everywhere)), "prints": seen(lambda: prints(everywhere))}
    with jax.debug_nans(True):
        found["checks"] = seen(lambda: again(everywhere))
    compiled = again.lower(everywhere).compile()
    return found | {
        "compiled": seen(lambda: compiled(everywhere)),
        "eager": seen(lambda: everywhere + 1),
        "here": seen(lambda: here(jnp.ones(3))),
    }


@sky.function
def writes_a_key(name: str) -> str:
    """Have the head write at the coordinator what all ranks read."""
    import jax
    from jax._src import distributed

    client: Any = distributed.global_state.client
    if jax.process_index() == 0:
        client.key_value_set(name, "0")
    found = str(client.blocking_key_value_get(name, 10_000))
    client.wait_at_barrier(name, 10_000)
    return found


@sky.function
def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@sky.function
def initialises_itself() -> tuple[int, float]:
    """Do what a script does that was written without us, and do it twice."""
    import jax

    info = sky.instance_info()
    for _ in range(2):
        jax.distributed.initialize()
        jax.distributed.initialize(
            f"{info.head_addr}:1234", num_processes=jax.process_count(), process_id=jax.process_index()
        )
        total = summed()
        jax.distributed.shutdown()
    return jax.process_count(), total


@sky.function
def initialises_something_else() -> tuple[int, float]:
    """Make a world of one in each rank of a broadcast."""
    import socket

    import jax

    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=1, process_id=0)
    return jax.process_count(), summed()


@sky.function
def loses_the_head(mark: str) -> int:
    """Sum until the head's node is lost, the first time."""
    import jax

    for turn in range(20):
        summed()
        if turn == 10 and jax.process_index() == 0 and not os.path.exists(mark):
            with open(mark, "w", encoding="utf-8"):
                os.kill(os.getppid(), signal.SIGKILL)
    return jax.process_count()


def fresh(**settings: Any) -> Any:
    return sky.Compute(**{"nodes": 2, "plugins": [sky.plugins.jax()], "console": "silent", **settings})


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """Two nodes."""
    with fresh() as pool:
        yield pool


def sums(pool: sky.Pool) -> list[float]:
    """Give what each rank has as the sum of ones."""
    return [total for *_, total in world() @ pool]


def test_a_broadcast_is_one_world_whose_connection_is_kept(pool: sky.Pool) -> None:
    """Ranks are in order, each sees the devices of all, and the next broadcast finds what the last one left."""
    first, second = world() @ pool, world() @ pool
    assert [(0, 2, 2, 2.0), (1, 2, 2, 2.0)] == [(rank, size, devices, total) for rank, size, devices, _, total in first]
    assert first == second


def test_pmap_reaches_over_all_ranks(pool: sky.Pool) -> None:
    """As shard_map does."""
    assert [3.0, 3.0] == pmapped() @ pool


def test_another_call_is_a_world_of_one(pool: sky.Pool) -> None:
    """And the next broadcast is one of all again."""
    assert [2.0, 2.0] == sums(pool)
    rank, size, devices, _, total = world() >> pool
    assert (0, 1, 1, 1.0) == (rank, size, devices, total)
    assert [2.0, 2.0] == sums(pool)


def test_the_coordinator_is_kept_over_other_calls(pool: sky.Pool) -> None:
    """Libraries such as Orbax keep the connection to it, and count what they did by it."""
    before = world() @ pool
    for _ in range(3):
        world() >> pool
        assert before == world() @ pool


def test_programs_find_the_coordinator_in_their_environment(pool: sky.Pool) -> None:
    """By JAX's own variable, in broadcasts alone."""
    told = sky.function(lambda: os.environ.get("JAX_COORDINATOR_ADDRESS"))
    first, second = told() @ pool
    assert first == second
    assert first.startswith("127.0.0.1:")
    assert (told() >> pool) is None


def test_keys_at_the_coordinator_end_with_their_broadcast(pool: sky.Pool) -> None:
    """As they do in a program that is started anew: the next one can write the same."""
    for _ in range(2):
        assert ["0", "0"] == writes_a_key("mine") @ pool
    world() >> pool
    assert ["0", "0"] == writes_a_key("mine") @ pool


def test_code_that_initialises_jax_itself_runs_as_it_is(pool: sky.Pool) -> None:
    """Once or twice, with the world that is there or with one of its own, in a broadcast and alone."""
    assert [(2, 2.0)] * 2 == initialises_itself() @ pool
    assert (1, 1.0) == initialises_itself() >> pool
    assert [(1, 1.0)] * 2 == initialises_something_else() @ pool
    assert (1, 1.0) == initialises_something_else() >> pool
    assert [2.0, 2.0] == sums(pool)


@pytest.mark.parametrize("who", [0, 1])
def test_the_first_failure_is_the_error(pool: sky.Pool, who: int) -> None:
    """The other rank waits in a sum: it is released, and the pool goes on with processes that know of nothing."""
    # Ranks that have not met in a sum yet wait for each other in another way, which nothing ends.
    assert [2.0, 2.0] == sums(pool)
    pids = sky.function(os.getpid)() @ pool
    began = time.monotonic()
    with pytest.raises(ValueError, match=f"rank {who} does not want to"):
        one_raises(who) @ pool
    assert time.monotonic() - began < STATED
    assert [2.0, 2.0] == sums(pool)
    assert not {*pids} & {*(sky.function(os.getpid)() @ pool)}


@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_killed_in_the_middle_of_a_sum_is_one_error(pool: sky.Pool, victim: int) -> None:
    """It is that of the worker, not of the one that noticed, also where the coordinator died; both are replaced."""
    pids = sky.function(os.getpid)() @ pool
    began = time.monotonic()
    with pytest.raises(sky.WorkerDiedError, match=rf"killed_in_the_middle\(\) on node {victim}.*SIGKILL"):
        killed_in_the_middle(victim) @ pool
    assert time.monotonic() - began < STATED
    assert [2.0, 2.0] == sums(pool)
    assert not {*pids} & {*(sky.function(os.getpid)() @ pool)}


def test_a_broadcast_that_loses_the_coordinators_node_is_tried_again(pool: sky.Pool, tmp_path: Any) -> None:
    """As a whole, in processes that know of no other world."""
    pids = sky.function(os.getpid)() @ pool
    assert [2, 2] == loses_the_head(str(tmp_path / "lost")) @ pool
    assert not {*pids} & {*(sky.function(os.getpid)() @ pool)}


def test_a_worker_that_died_between_broadcasts_is_noticed(pool: sky.Pool) -> None:
    """The others hold a connection that the new process has no part in, or whose coordinator is gone."""
    for _ in range(2):
        assert [2.0, 2.0] == sums(pool)
        with pytest.raises(sky.WorkerDiedError):
            dies() >> pool
    assert [2.0, 2.0] == sums(pool)


def test_a_rank_that_returns_early_leaves_the_others_to_their_time_limit(pool: sky.Pool) -> None:
    """Which ends the broadcast, and the pool goes on."""
    with pytest.raises(sky.TaskTimeoutError):
        returns_early(0).with_timeout(2) @ pool
    assert [2.0, 2.0] == sums(pool)


@pytest.mark.parametrize("who", some("the rank of jax that hangs", [0, 1]))
def test_a_broadcast_that_hangs_ends_with_the_stack_of_every_rank(who: int) -> None:
    """One rank returned early, or goes on by itself, and the other waits for it; the pool goes on."""
    with fresh(plugins=[sky.plugins.jax(hang_timeout=10)]) as pool:
        assert [2.0, 2.0] == sums(pool)
        began = time.monotonic()
        with pytest.raises(sky.HangError, match=rf"rank {1 - who}: .* in summed") as early:
            returns_early(who) @ pool
        assert 10 < time.monotonic() - began < 10 + STATED
        assert f"rank {who}: returned" in str(early.value)
        assert {1 - who} == set(early.value.stacks)
        assert "in returns_early" in early.value.stacks[1 - who]
        assert [2.0, 2.0] == sums(pool)
        with pytest.raises(sky.HangError, match=rf"rank {who}: .* in sleeps_in_a_loop") as asleep:
            sleeps_in_a_loop(who) @ pool
        assert {0, 1} == set(asleep.value.stacks)
        assert "in summed" in asleep.value.stacks[1 - who]
        assert [2.0, 2.0] == sums(pool)


def test_whatever_spans_several_ranks_is_seen_to_be_executed() -> None:
    """What is called for the first time and again, compiled ahead, printing and checked; not what is a rank's own."""
    with fresh(plugins=[sky.plugins.jax(hang_timeout=60)]) as pool:
        for found in noted() @ pool:
            for what in ("again", "prints", "checks", "compiled", "eager"):
                assert [True] * 3 == [count > 0 for count in found[what]], what
            assert [0] * 3 == found["here"]


def test_several_ranks_of_a_node_and_two_pools_at_once_do_not_meet() -> None:
    """Each has a port of its own, also while both work."""
    with fresh(per_node=2) as one, fresh(nodes=1, per_node=2) as other:
        assert [[4.0] * 4, [2.0] * 2] == [sums(pool) for pool in (one, other)]
        assert [[2.0] * 2, [4.0] * 4] == [sums(pool) for pool in (other, one)]


def test_the_world_follows_the_pool() -> None:
    """A pool that shrinks or grows has a world of its size."""
    with fresh() as pool:
        assert [2, 2] == [size for _, size, *_ in world() @ pool]
        for nodes in (1, 3):
            pool.resize(nodes)
            _until(lambda nodes=nodes: pool.current_nodes() == nodes)
            assert [float(nodes)] * nodes == sums(pool)


def test_one_function_can_have_the_plugin() -> None:
    """On a pool without it, as nodes on this machine have JAX."""
    with sky.Compute(nodes=2, console="silent") as pool:
        summing = sky.integrations.jax()(world)
        assert [(0, 2, 2.0), (1, 2, 2.0)] == [(rank, size, total) for rank, size, *_, total in summing() @ pool]


def test_a_version_that_does_not_exist_is_one_clear_error(tmp_path: Any) -> None:
    """It names the package and the version."""
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "index.html").write_text("<!DOCTYPE html><html><body></body></html>")
    image = sky.Image(pip_indexes=[sky.PipIndex(f"file://{tmp_path}", ["jax"])])
    with pytest.raises(sky.SkywardError, match=r"jax==99\.0") as caught:
        fresh(plugins=[sky.plugins.jax(version="99.0")], image=image).__enter__()
    assert "or what a plugin was given for version=" in str(caught.value)


def _until(holds: Any, seconds: float = 60.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
