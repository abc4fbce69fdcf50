"""PyTorch on a real GPU: NCCL, the memory of ranks that die, and tensors that come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

import skyward as sky
from tests.gpus import gpu_work
from tests.gpus.conftest import asked
from tests.waiting import until

pytestmark = [pytest.mark.gpus, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def alone() -> Iterator[sky.Pool]:
    """Run one rank with the backend that the plugin chooses."""
    with sky.Compute(plugins=[sky.plugins.torch()], console="silent", logging=False) as pool:
        yield pool


@pytest.fixture(scope="module")
def pair() -> Iterator[sky.Pool]:
    """Run two ranks that share the GPU, which NCCL refuses and gloo does not."""
    plugins = [sky.plugins.torch(backend="gloo")]
    with sky.Compute(per_node=2, plugins=plugins, console="silent", logging=False) as pool:
        yield pool


def test_the_backend_on_gpus_is_nccl_and_gloo(alone: sky.Pool) -> None:
    """A sum on the processor and one on the GPU are done in the same group."""
    [(rank, size, backend, here, there)] = gpu_work.group() @ alone
    assert (rank, size, here, there) == (0, 1, 1.0, 1.0)
    assert backend == "cpu:gloo,cuda:nccl"


def test_nccl_by_name_sums_on_the_gpu() -> None:
    """A sum on the processor is then refused by torch."""
    with sky.Compute(plugins=[sky.plugins.torch(backend="nccl")], console="silent", logging=False) as pool:
        with pytest.raises(Exception, match=r"No backend type associated with device type cpu"):
            gpu_work.group() @ pool
        assert isinstance((gpu_work.train("cuda") @ pool)[0], tuple)


def test_training_on_the_gpu_gives_what_a_processor_gives(alone: sky.Pool, pair: sky.Pool) -> None:
    """By one rank and by two, to 1e-9 after 20 steps in float64."""
    losses, weights = gpu_work.train("cpu") >> alone
    for their_losses, theirs in [gpu_work.train("cuda") >> alone, *(gpu_work.train("cuda") @ pair)]:
        np.testing.assert_allclose(their_losses, losses, rtol=0, atol=1e-9)
        for expected, found in zip(weights, theirs, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_the_memory_of_a_killed_rank_is_free_for_the_next_world(pair: sky.Pool) -> None:
    """Ranks that hold a third of the memory each can be killed four times."""
    share = int(asked("memory.total")[0]) // 1024 // 3
    for turn in range(4):
        with pytest.raises(sky.WorkerDiedError, match="SIGKILL"):
            gpu_work.killed_holding(share, turn % 2) @ pair
    assert [2.0] * 2 == [there for *_, there in gpu_work.group() @ pair]


def test_a_rank_that_raises_ends_the_sum_of_the_other(pair: sky.Pool) -> None:
    """The error is the first one, and the next broadcast works."""
    with pytest.raises(ValueError, match="rank 1 does not want to"):
        gpu_work.one_raises(1) @ pair
    assert [2.0] * 2 == [there for *_, there in gpu_work.group() @ pair]


def test_a_gpu_that_is_full_is_an_error_of_the_call_alone(alone: sky.Pool) -> None:
    """The worker goes on."""
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        gpu_work.too_much() >> alone
    assert (gpu_work.visible() >> alone)[1] == 1


def test_tensors_on_the_gpu_come_and_go(alone: sky.Pool) -> None:
    """They are on the GPU where they arrive, as pickles of torch are."""
    made = gpu_work.ones(1 << 20) >> alone
    assert made.is_cuda
    assert float(made.sum()) == 1 << 20
    assert gpu_work.total(made) >> alone == ("cuda", float(1 << 20))


def test_memory_that_the_gpu_wrote_is_sent_again(alone: sky.Pool) -> None:
    """The kernel's page table does not see what a device writes into pinned memory."""
    pinned = torch.zeros(8 << 20, pin_memory=True)
    for value in (1.0, 2.0, 3.0):
        pinned.copy_(torch.full((8 << 20,), value, device="cuda"))
        torch.cuda.synchronize()
        for _ in range(2):
            assert gpu_work.total(pinned) >> alone == ("cpu", value * (8 << 20))


def test_nccl_refuses_two_ranks_on_one_gpu() -> None:
    """Its own reason is in the error, and the ranks go on."""
    plugins = [sky.plugins.torch(backend="cpu:gloo,cuda:nccl")]
    with sky.Compute(per_node=2, plugins=plugins, console="silent", logging=False) as pool:
        with pytest.raises(Exception, match="Duplicate GPU detected") as caught:
            gpu_work.group() @ pool
        print(type(caught.value), str(caught.value)[:600])
        assert [0, 1] == [rank for rank, *_ in gpu_work.place() @ pool]


def test_a_training_on_the_gpu_that_is_killed_ends_where_it_would_have(tmp_path: Path) -> None:
    """Its checkpoints are loaded into main memory, from where the model and the optimizer take them."""
    with sky.Compute(console="silent", logging=False) as pool:
        once = sky.function(gpu_work.trained_on)(5, 0) >> pool
        twice = sky.function(retries=1)(gpu_work.trained_on)(5, 3, str(tmp_path / "kept")) >> pool
    for expected, found in zip(once, twice, strict=True):
        np.testing.assert_array_equal(expected, found)


def test_nothing_is_left_on_the_gpu() -> None:
    """A pool's end frees what its workers held."""
    before = int(asked("memory.used")[0])
    with sky.Compute(per_node=2, console="silent", logging=False) as pool:
        assert [True, True] == gpu_work.allocated(4) @ pool
        assert int(asked("memory.used")[0]) > before
    until(lambda: int(asked("memory.used")[0]) <= before + 16)
