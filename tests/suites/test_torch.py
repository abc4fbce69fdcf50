"""
What torch.distributed has beyond data-parallel training, on two ranks over gloo, beside what one process computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import skyward as sky

pytestmark = [pytest.mark.suites, pytest.mark.timeout(600)]


def model() -> Any:
    """Make the same small model everywhere."""
    import torch

    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4)).double()


def trained(net: Any, rank: int, ranks: int, steps: int = 5) -> Any:
    """Train with a rank's share of the same sixteen samples."""
    import torch

    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(16, 8, generator=generator, dtype=torch.float64)[rank::ranks]
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimiser.zero_grad()
        net(inputs).square().mean().backward()
        optimiser.step()
    return optimiser


def alone() -> list[Any]:
    net = model()
    trained(net, 0, 1)
    return [weight.detach().numpy() for weight in net.parameters()]


@sky.function
def shards_fully() -> list[Any]:
    """Train with FSDP 2, and give the whole weights."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    net = model()
    fully_shard(net, mesh=init_device_mesh("cpu", (dist.get_world_size(),)))
    trained(net, dist.get_rank(), dist.get_world_size())
    return [weight.full_tensor().detach().numpy() for weight in net.parameters()]


@sky.function
def saves_and_loads(directory: str) -> bool:
    """Save with DCP, each rank its part, and load into another model."""
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    first, second = model(), model()
    fully_shard(first, mesh=mesh)
    trained(first, dist.get_rank(), dist.get_world_size())
    fully_shard(second, mesh=mesh)
    dcp.save({"model": first.state_dict()}, checkpoint_id=directory)
    state = {"model": second.state_dict()}
    dcp.load(state, checkpoint_id=directory)
    second.load_state_dict(state["model"])
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    return all(torch.equal(one.full_tensor(), other.full_tensor()) for one, other in pairs)


@sky.function
def joins() -> int:
    """Give ranks different numbers of batches, which Join makes up for."""
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms.join import Join

    net = torch.nn.parallel.DistributedDataParallel(model())
    steps = 0
    with Join([net]):
        for _ in range(3 + 2 * dist.get_rank()):
            net(torch.ones(2, 8, dtype=torch.float64)).sum().backward()
            steps += 1
    return steps


@sky.function
def meshes() -> tuple[float, float, list[float]]:
    """Sum along each dimension of a mesh, and over a tensor that is shared out on it."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    ranks = dist.get_world_size()
    mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("data", "model"))
    sums = []
    for name in ("data", "model"):
        one = torch.ones(1) * (dist.get_rank() + 1)
        dist.all_reduce(one, group=mesh[name].get_group())
        sums.append(float(one))
    shared = distribute_tensor(torch.arange(8.0), init_device_mesh("cpu", (ranks,)), [Shard(0)])
    return sums[0], sums[1], (shared * 2).full_tensor().tolist()


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Compute]:
    """Two nodes with two ranks each."""
    with sky.Compute(nodes=2, per_node=2, plugins=[sky.plugins.torch()], console="silent") as pool:
        yield pool


def test_a_model_that_is_sharded_fully_learns_what_one_process_does(pool: sky.Compute) -> None:
    """After five steps in float64, to 1e-9."""
    import numpy as np

    for weights in shards_fully() @ pool:
        for expected, found in zip(alone(), weights, strict=True):
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_a_checkpoint_of_all_ranks_is_read_by_all(pool: sky.Compute, tmp_path: Any) -> None:
    """Where all of them reach it."""
    assert [True] * 4 == saves_and_loads(str(tmp_path)) @ pool


def test_ranks_with_different_numbers_of_batches_join(pool: sky.Compute) -> None:
    """As many as each has, and the next broadcast goes on."""
    assert [3, 5, 7, 9] == joins() @ pool
    assert [3, 5, 7, 9] == joins() @ pool


def test_meshes_of_devices(pool: sky.Compute) -> None:
    """Of two dimensions, twice in a row."""
    expected = [2.0 * number for number in range(8)]
    for _ in range(2):
        found = meshes() @ pool
        assert [(4.0, 3.0), (6.0, 3.0), (4.0, 7.0), (6.0, 7.0)] == [sums[:2] for sums in found]
        assert [expected] * 4 == [whole for *_, whole in found]
