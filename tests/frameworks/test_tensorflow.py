"""
Real training with TensorFlow on nodes of this machine.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.frameworks.tensorflow_work import train_alone, train_together, world
from tests.seeds import some

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(300)]

STATED = 15.0
"""Seconds within which a broadcast ends that lost a rank: docs/tensorflow.md."""


@sky.function
def resolved() -> tuple[dict[str, list[str]], str, int, str, str]:
    """Give what TensorFlow's own resolver reads, and the environment variable."""
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    cluster = resolver.cluster_spec().as_dict()
    return cluster, resolver.task_type, resolver.task_id, resolver.master(), os.environ["TF_CONFIG"]


@sky.function
def computes() -> tuple[int, float, str | None]:
    import tensorflow as tf

    return os.getpid(), float(tf.reduce_sum(tf.ones([3]))), os.environ.get("TF_CONFIG")


@sky.function
def killed_in_the_middle(victim: int, note: str) -> None:
    """Sum without end, until one rank is killed from within, which notes the time."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def add() -> Any:
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([1000]))

    step = tf.function(lambda: strategy.run(add))
    turn = 0
    while True:
        step()
        turn += 1
        if turn == 50 and sky.instance_info().global_worker_index == victim:
            Path(note).write_text(str(time.time()))
            os.kill(os.getpid(), signal.SIGKILL)


@sky.function
def one_raises(who: int) -> None:
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    if sky.instance_info().global_worker_index == who:
        raise ValueError(f"rank {who} does not want to")
    strategy.run(
        tf.function(lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([])))
    )


@sky.function
def says_it_itself() -> tuple[int, float]:
    """Do what a script does that was written without us: write TF_CONFIG, and make its strategies."""
    import tensorflow as tf

    os.environ["TF_CONFIG"] = json.dumps(json.loads(os.environ["TF_CONFIG"]))
    strategies = [tf.distribute.MultiWorkerMirroredStrategy() for _ in range(2)]
    one = tf.function(lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([])))
    return strategies[0].num_replicas_in_sync, float(strategies[1].run(one))


@sky.function
def returns_early(who: int) -> None:
    """Return on one rank, and wait in a sum on the others."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    if sky.instance_info().global_worker_index != who:
        step = tf.function(lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, 1.0))
        strategy.run(step)


@sky.function
def sleeps_in_a_loop(who: int) -> None:
    """Sleep without end on one rank, and wait in a sum on the others, without a tf.function."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    while sky.instance_info().global_worker_index == who:
        time.sleep(0.01)
    strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda: tf.ones([])), axis=None)
    strategy.run(lambda: tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([])))


@sky.function
def noted() -> dict[str, int]:
    """Count what is seen of steps as functions, methods and strategies call them."""
    import tensorflow as tf

    from skyward_tensorflow.calls import CALLS

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    class Module(tf.Module):
        @tf.function
        def step(self) -> Any:
            return strategy.run(add)

    def add() -> Any:
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([]))

    step, module = tf.function(lambda: strategy.run(add)), Module()
    found = {}
    for name, do in {"function": step, "method": module.step, "eager": lambda: strategy.run(add)}.items():
        assert float(do()) == 2.0
        before = CALLS.count()
        do()
        found[name] = CALLS.count() - before
    return found


@sky.function
def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fresh(**settings: Any) -> Any:
    return sky.Compute(**{"nodes": 2, "plugins": [sky.plugins.tensorflow()], "console": "silent", **settings})


def sums(ranks: list[tuple[int, int, float]]) -> list[tuple[int, float]]:
    return [(replicas, summed) for _, replicas, summed in ranks]


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """Two nodes."""
    with fresh() as pool:
        yield pool


def test_training_on_two_nodes_gives_what_one_process_gives(pool: sky.Pool) -> None:
    """After 20 steps in float64, the losses and every weight agree to 1e-9, on all ranks."""
    import numpy as np

    losses, weights = train_alone() >> pool
    assert losses[-1] < losses[0] / 2
    for their_losses, theirs in train_together() @ pool:
        np.testing.assert_allclose(their_losses, losses, rtol=0, atol=1e-9)
        for expected, found in zip(weights, theirs, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_tensorflow_s_own_resolver_reads_every_rank() -> None:
    """Each rank has a port of its own, and hears its place as the documentation has it."""
    with fresh(per_node=2) as pool:
        told = resolved() @ pool
    workers = told[0][0]["worker"]
    assert 4 == len(set(workers))
    assert [True] * 4 == [worker.startswith("127.0.0.1:") for worker in workers]
    for index, (cluster, task, number, master, text) in enumerate(told):
        assert ({"worker": workers}, "worker", index) == (cluster, task, number)
        assert f"grpc://{workers[index]}".removeprefix("grpc://") == master.removeprefix("grpc://")
        assert {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}} == json.loads(text)


def test_a_cluster_is_kept_from_one_broadcast_to_the_next(pool: sky.Pool) -> None:
    """In the same processes, at the same ports."""
    first, second = world() @ pool, world() @ pool
    assert [(2, 2.0)] * 2 == sums(first)
    assert first == second


@pytest.mark.everything
def test_another_call_is_a_world_of_one(pool: sky.Pool) -> None:
    """It has no TF_CONFIG, begins in a process without a cluster, and the next broadcast has one again."""
    before = world() @ pool
    pid, summed, config = computes() >> pool
    assert (3.0, None) == (summed, config)
    assert pid not in {its for its, *_ in before}
    assert (1, 1.0) == (world() >> pool)[1:]
    assert [(2, 2.0)] * 2 == sums(world() @ pool)


@pytest.mark.parametrize("who", some("the rank of tensorflow that fails", [0, 1]))
def test_the_first_failure_is_the_error(pool: sky.Pool, who: int) -> None:
    """The other rank waits in a collective; it is ended, and the pool goes on."""
    world() @ pool
    with pytest.raises(ValueError, match=f"rank {who} does not want to"):
        one_raises(who) @ pool
    assert [(2, 2.0)] * 2 == sums(world() @ pool)


@pytest.mark.parametrize("victim", some("the rank of tensorflow that is killed", [0, 1]))
def test_a_worker_killed_in_the_middle_of_a_sum_is_one_error(pool: sky.Pool, victim: int, tmp_path: Path) -> None:
    """It is that of the worker, not of the one that noticed; it comes in time, and the pool goes on."""
    world() @ pool
    with pytest.raises(sky.WorkerDiedError, match=rf"killed_in_the_middle\(\) on node {victim}.*SIGKILL"):
        killed_in_the_middle(victim, str(tmp_path / "killed")) @ pool
    assert time.time() - float((tmp_path / "killed").read_text()) < STATED
    assert [(2, 2.0)] * 2 == sums(world() @ pool)


def test_a_worker_that_died_between_broadcasts_is_noticed(pool: sky.Pool) -> None:
    """The other one is in a cluster that the new process has no part in, and is replaced too."""
    world() @ pool
    with pytest.raises(sky.WorkerDiedError):
        dies() >> pool
    assert [(2, 2.0)] * 2 == sums(world() @ pool)


@pytest.mark.everything
@pytest.mark.parametrize("who", some("the rank of tensorflow that hangs", [0, 1]))
def test_a_broadcast_that_hangs_ends_with_the_stack_of_every_rank(who: int) -> None:
    """One rank returned early, or sleeps, and the other waits for it; the pool goes on."""
    with fresh(plugins=[sky.plugins.tensorflow(hang_timeout=15)]) as pool:
        assert [(2, 2.0)] * 2 == sums(world() @ pool)
        began = time.monotonic()
        with pytest.raises(sky.HangError, match=rf"rank {1 - who}: .* in returns_early") as early:
            returns_early(who) @ pool
        assert 15 < time.monotonic() - began < 15 + STATED
        assert f"rank {who}: returned" in str(early.value)
        assert {1 - who} == set(early.value.stacks)
        assert [(2, 2.0)] * 2 == sums(world() @ pool)
        with pytest.raises(sky.HangError, match=rf"rank {who}: .* in sleeps_in_a_loop") as asleep:
            sleeps_in_a_loop(who) @ pool
        assert {0, 1} == set(asleep.value.stacks)
        assert [(2, 2.0)] * 2 == sums(world() @ pool)


def test_code_that_writes_its_own_tf_config_runs_as_it_is(pool: sky.Pool) -> None:
    """And the next broadcast has ours again."""
    assert [(2, 2.0)] * 2 == says_it_itself() @ pool
    assert [(2, 2.0)] * 2 == sums(world() @ pool)


def test_each_step_is_seen() -> None:
    """Whether a function, a method or the strategy itself is called, it begins and it ends."""
    with fresh(plugins=[sky.plugins.tensorflow(hang_timeout=60)]) as pool:
        for found in noted() @ pool:
            assert (2, 2) == (found["function"], found["method"])
            assert found["eager"] >= 2


@pytest.mark.everything
def test_two_pools_at_once_do_not_meet() -> None:
    """Each has ports of its own, also while both work."""
    with fresh() as one, fresh() as other:
        assert [[(2, 2.0)] * 2] * 2 == [sums(world() @ pool) for pool in (one, other)]
        assert [[(2, 2.0)] * 2] * 2 == [sums(world() @ pool) for pool in (other, one)]


def test_the_world_follows_the_pool() -> None:
    """A pool that shrinks or grows has a cluster of its size, in fresh processes."""
    with fresh() as pool:
        assert [(2, 2.0)] * 2 == sums(world() @ pool)
        pool.resize(1)
        _until(lambda: pool.current_nodes() == 1)
        assert [(1, 1.0)] == sums(world() @ pool)
        pool.resize(3)
        _until(lambda: pool.current_nodes() == 3)
        assert [(3, 3.0)] * 3 == sums(world() @ pool)


def test_one_function_can_have_the_plugin() -> None:
    """On a pool without it, as nodes on this machine have TensorFlow."""
    with sky.Compute(nodes=2, console="silent") as pool:
        assert [(2, 2.0)] * 2 == sums(sky.integrations.tensorflow()(world)() @ pool)


def test_a_version_that_does_not_exist_is_one_clear_error(tmp_path: Any) -> None:
    """It names the package and the version."""
    (tmp_path / "tensorflow-cpu").mkdir()
    (tmp_path / "tensorflow-cpu" / "index.html").write_text("<!DOCTYPE html><html><body></body></html>")
    image = sky.Image(pip_indexes=[sky.PipIndex(f"file://{tmp_path}", ["tensorflow-cpu"])])
    with pytest.raises(sky.SkywardError, match=r"tensorflow-cpu==99\.0") as caught:
        fresh(plugins=[sky.plugins.tensorflow(version="99.0")], image=image).__enter__()
    assert "or what a plugin was given for version=" in str(caught.value)


def _until(holds: Any, seconds: float = 120.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
