"""
Real training with torch and gloo on nodes of this machine.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

import skyward as sky
from tests.frameworks.torch_work import killed_in_the_middle, train, train_together, world

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(180)]

STATED = 15.0
"""Seconds within which a broadcast ends that lost a rank: docs/torch.md."""


@sky.function
def variables() -> dict[str, str]:
    return {name: os.environ[name] for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")}


@sky.function
def one_raises(who: int) -> None:
    import torch
    import torch.distributed as dist

    if dist.get_rank() == who:
        raise ValueError(f"rank {who} does not want to")
    dist.all_reduce(torch.ones(1))


@sky.function
def waits_for_nobody(who: int) -> str:
    """Return early on one rank, and wait in a collective on the others."""
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.ones(1))
    if dist.get_rank() != who:
        dist.all_reduce(torch.ones(1))
    return "done"


@sky.function
def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@sky.function
def initialises_itself() -> float:
    """Do what a script for torchrun does, and do it twice."""
    import torch
    import torch.distributed as dist

    summed = torch.ones(1)
    for _ in range(2):
        dist.init_process_group("gloo")
        dist.all_reduce(summed)
        dist.destroy_process_group()
    return float(summed)


@sky.function
def initialises_with_settings() -> tuple[int, float]:
    from datetime import timedelta

    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method="env://", timeout=timedelta(seconds=60))
    summed = torch.ones(1)
    dist.all_reduce(summed)
    return dist.get_world_size(), float(summed)


@sky.function
def goes_on_in_a_group_of_its_own(seconds: float) -> float:
    """Use another group than the default one for longer than any limit, as tensor parallelism does."""
    import torch
    import torch.distributed as dist

    ranks = dist.new_group(range(dist.get_world_size()))
    until = time.monotonic() + seconds
    over, summed = torch.zeros(1), torch.ones(1)
    while not over:
        over = torch.tensor([float(time.monotonic() > until and dist.get_rank() == 0)])
        dist.all_reduce(over, group=ranks)
        time.sleep(0.05)
    dist.all_reduce(summed, group=ranks)
    return float(summed)


@sky.function
def overlooks_a_timeout(late: float | None) -> str:
    """Catch what a collective raises for which the other rank came late, or not at all."""
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 1:
        if late is None:
            return "did not come"
        time.sleep(late)
    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        return str(error)
    return "summed"


@sky.function
def stands_still(who: int) -> None:
    """Be stopped on one rank, where nothing in the process goes on, while the others wait for it."""
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.ones(1))
    if dist.get_rank() == who:
        os.kill(os.getpid(), signal.SIGSTOP)
    dist.all_reduce(torch.ones(1))


@sky.function
def tells_itself_otherwise() -> None:
    """Do what PyTorch's tutorial does before it starts processes."""
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", "29500"
    os.environ["RANK"] = os.environ["WORLD_SIZE"] = "77"


@sky.function
def spawns() -> str:
    import socket

    import torch.multiprocessing as mp

    from tests.frameworks.torch_work import spawned

    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    mp.spawn(spawned, args=(port,), nprocs=2)
    return os.environ["TORCHELASTIC_USE_AGENT_STORE"]


def fresh(**settings: Any) -> Any:
    return sky.Compute(**{"nodes": 2, "plugins": [sky.plugins.torch()], "console": "silent", **settings})


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """Two nodes with two ranks each."""
    with fresh(per_node=2) as pool:
        yield pool


def test_training_on_four_ranks_gives_what_one_process_gives(pool: sky.Pool) -> None:
    """After 20 steps in float64, the losses and every weight agree to 1e-9, on all ranks."""
    import numpy as np

    losses, weights = train(0, 1)
    assert losses[-1] < losses[0] / 2
    for their_losses, theirs in train_together() @ pool:
        np.testing.assert_allclose(their_losses, losses, rtol=0, atol=1e-9)
        for expected, found in zip(weights, theirs, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_a_broadcast_is_one_world_whose_group_is_kept(pool: sky.Pool) -> None:
    """Ranks are in order, and the next broadcast finds the group that the last one left."""
    first, second = world() @ pool, world() @ pool
    assert [(rank, 4, 4.0) for rank in range(4)] == [(rank, size, summed) for rank, size, _, summed in first]
    assert first == second
    assert [("0", "0"), ("1", "1"), ("2", "0"), ("3", "1")] == [
        (told["RANK"], told["LOCAL_RANK"]) for told in variables() @ pool
    ]


def test_another_call_is_a_world_of_one(pool: sky.Pool) -> None:
    """And takes nothing from the group of broadcasts."""
    before = world() @ pool
    rank, size, _, summed = world() >> pool
    assert (0, 1, 1.0) == (rank, size, summed)
    assert {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"} == variables() >> pool
    assert before == world() @ pool


def test_variables_that_a_task_sets_are_forgotten_with_it(pool: sky.Pool) -> None:
    """The next one gets its variables anew, also where they are the same as before."""
    told = variables() @ pool
    tells_itself_otherwise() @ pool
    assert told == variables() @ pool
    assert [4.0] * 4 == [summed for *_, summed in world() @ pool]


def test_a_task_can_start_processes_that_form_a_world_of_their_own(pool: sky.Pool) -> None:
    """They open a store of theirs, in a broadcast and alone."""
    assert ["True"] * 4 == spawns().with_timeout(60) @ pool
    assert "False" == spawns().with_timeout(60) >> pool


def test_code_that_initialises_the_process_group_itself_runs_as_it_is(pool: sky.Pool) -> None:
    """Once or twice, destroyed or not, with settings of its own, in a broadcast and alone."""
    assert [16.0] * 4 == initialises_itself() @ pool
    assert 1.0 == initialises_itself() >> pool
    assert [(4, 4.0)] * 4 == initialises_with_settings() @ pool
    assert (1, 1.0) == initialises_with_settings() >> pool
    assert [4.0] * 4 == [summed for *_, summed in world() @ pool]


@pytest.mark.parametrize("who", [0, 3])
def test_the_first_failure_is_the_error(pool: sky.Pool, who: int) -> None:
    """The other ranks wait in a collective: they are cancelled, no process is lost, and the pool goes on."""
    before = world() @ pool
    began = time.monotonic()
    with pytest.raises(ValueError, match=f"rank {who} does not want to"):
        one_raises(who) @ pool
    assert time.monotonic() - began < STATED
    after = world() @ pool
    assert [(rank, size, summed) for rank, size, _, summed in before] == [
        (rank, size, summed) for rank, size, _, summed in after
    ]


@pytest.mark.parametrize("victim", [0, 3])
def test_a_worker_killed_in_the_middle_of_a_sum_is_one_error(pool: sky.Pool, victim: int) -> None:
    """It is that of the worker, not of those that noticed; it comes in time, and the pool goes on."""
    began = time.monotonic()
    with pytest.raises(sky.WorkerDiedError, match=rf"killed_in_the_middle\(\) on node {victim // 2}.*SIGKILL"):
        killed_in_the_middle(victim) @ pool
    assert time.monotonic() - began < STATED
    assert [4.0] * 4 == [summed for *_, summed in world() @ pool]


def test_a_worker_that_died_between_broadcasts_is_noticed(pool: sky.Pool) -> None:
    """The others hold a group that the new process has no part in."""
    world() @ pool
    with pytest.raises(sky.WorkerDiedError):
        dies() >> pool
    assert [4.0] * 4 == [summed for *_, summed in world() @ pool]


def test_two_pools_at_once_do_not_meet() -> None:
    """Each has a port of its own, also while both work."""
    with fresh() as one, fresh() as other:
        assert [[2.0] * 2] * 2 == [[summed for *_, summed in world() @ pool] for pool in (one, other)]
        assert [[2.0] * 2] * 2 == [[summed for *_, summed in world() @ pool] for pool in (other, one)]


def test_the_world_follows_the_pool() -> None:
    """A pool that shrinks or grows has a group of its size, whichever node was its head."""
    with fresh() as pool:
        assert [2, 2] == [size for _, size, *_ in world() @ pool]
        pool.resize(1)
        _until(lambda: pool.current_nodes() == 1)
        assert [1] == [size for _, size, *_ in world() @ pool]
        pool.resize(3)
        _until(lambda: pool.current_nodes() == 3)
        assert [(3, 3.0)] * 3 == [(size, summed) for _, size, _, summed in world() @ pool]


def test_one_function_can_have_the_plugin() -> None:
    """On a pool without it, as nodes on this machine have torch."""
    with sky.Compute(nodes=2, console="silent") as pool:
        summing = sky.integrations.torch(backend="gloo")(world)
        assert [(0, 2, 2.0), (1, 2, 2.0)] == [(rank, size, summed) for rank, size, _, summed in summing() @ pool]


def test_a_backend_for_gpus_is_refused_by_nodes_that_have_none() -> None:
    """What this machine has is found out before the first task."""
    with pytest.raises(sky.PluginError, match="backend='nccl' needs NVIDIA's GPUs, and torch sees none on node"):
        fresh(plugins=[sky.plugins.torch(backend="nccl")]).__enter__()


def test_a_version_that_does_not_exist_is_one_clear_error(tmp_path: Any) -> None:
    """It names the package and the version."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "index.html").write_text("<!DOCTYPE html><html><body></body></html>")
    image = sky.Image(pip_indexes=[sky.PipIndex(f"file://{tmp_path}", ["torch"])])
    with pytest.raises(sky.SkywardError, match=r"torch==99\.0") as caught:
        fresh(plugins=[sky.plugins.torch(version="99.0")], image=image).__enter__()
    assert "or what a plugin was given for version=" in str(caught.value)


@pytest.mark.parametrize("who", [0, 1])
def test_a_broadcast_that_hangs_ends_with_the_stack_of_every_rank(who: int) -> None:
    """One rank returned early, and the other waits for it; the pool goes on."""
    with fresh(plugins=[sky.plugins.torch(hang_timeout=2)]) as pool:
        began = time.monotonic()
        with pytest.raises(sky.HangError, match=rf"rank {1 - who}: .*waits_for_nobody") as caught:
            waits_for_nobody(who) @ pool
        assert 2 < time.monotonic() - began < 2 + STATED
        assert f"rank {who}: returned" in str(caught.value)
        assert {1 - who} == set(caught.value.stacks)
        assert "all_reduce" in caught.value.stacks[1 - who]
        assert [2.0, 2.0] == [summed for *_, summed in world() @ pool]


def test_collectives_of_all_groups_count() -> None:
    """A broadcast that uses a group of its own for twice the limit goes on."""
    with fresh(plugins=[sky.plugins.torch(hang_timeout=2)]) as pool:
        assert [2.0, 2.0] == goes_on_in_a_group_of_its_own(4) @ pool


@pytest.mark.everything
@pytest.mark.parametrize("who", [0, 1])
def test_a_rank_that_stands_still_is_no_judge(who: int) -> None:
    """The broadcast ends whichever rank it is, and its process is replaced."""
    with fresh(plugins=[sky.plugins.torch(hang_timeout=2)]) as pool:
        with pytest.raises(sky.HangError, match=rf"rank {1 - who}: .*stands_still") as caught:
            stands_still(who).with_timeout(60) @ pool
        assert f"rank {who}: does not answer" in str(caught.value)
        assert [2.0, 2.0] == [summed for *_, summed in world() @ pool]


@pytest.mark.parametrize("late", [None, pytest.param(2.0, marks=pytest.mark.everything)])
def test_a_group_whose_collective_timed_out_is_not_handed_on(late: float | None) -> None:
    """Although the task caught what was raised; the limit is the plugin's."""
    with fresh(plugins=[sky.plugins.torch(collective_timeout=1)]) as pool:
        assert "Timed out waiting 1000ms" in (overlooks_a_timeout(late).with_timeout(60) @ pool)[0]
        assert [2.0, 2.0] == [summed for *_, summed in world().with_timeout(60) @ pool]


def _until(holds: Any, seconds: float = 60.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
