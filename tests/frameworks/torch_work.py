"""
What nodes do with torch, in a module that needs nothing a node of its own environment lacks.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import skyward as sky

Step = tuple[list[float], list[Any]]


def train(rank: int, ranks: int, *, steps: int = 20) -> Step:
    """Train in float64 on the same 64 digits in each step, shared out among the ranks."""
    import torch
    from sklearn.datasets import load_digits

    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    inputs = torch.tensor(images[:64] / 16, dtype=torch.float64)[rank::ranks]
    targets = torch.tensor(labels[:64])[rank::ranks]
    model: Any = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10)).double()
    trained = torch.nn.parallel.DistributedDataParallel(model) if ranks > 1 else model
    optimiser = torch.optim.SGD(trained.parameters(), lr=0.5, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(trained(inputs), targets)
        loss.backward()
        optimiser.step()
        mean = loss.detach().clone()
        if ranks > 1:
            torch.distributed.all_reduce(mean)
        losses.append(float(mean) / ranks)
    return losses, [parameter.detach().numpy() for parameter in model.parameters()]


@sky.function
def train_together() -> Step:
    import torch.distributed as dist

    return train(dist.get_rank(), dist.get_world_size())


@sky.function
def train_alone() -> Step:
    return train(0, 1)


@sky.function
def world() -> tuple[int, int, int, float]:
    """Tell rank, size, which group it is, and what a sum over all gives."""
    import torch
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    summed = torch.ones(1)
    dist.all_reduce(summed)
    group = distributed_c10d._get_default_group()
    return dist.get_rank(), dist.get_world_size(), id(group), float(summed)


def spawned(index: int, port: int) -> None:
    """Be a process of `torch.multiprocessing.spawn`, as in PyTorch's tutorial."""
    import torch
    import torch.distributed as dist

    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    dist.init_process_group("gloo", rank=index, world_size=2)
    summed = torch.ones(1)
    dist.all_reduce(summed)
    assert float(summed) == 2
    dist.destroy_process_group()


@sky.function
def killed_in_the_middle(victim: int) -> None:
    """Sum without end, until one rank is killed from within."""
    import torch
    import torch.distributed as dist

    turn = 0
    while True:
        dist.all_reduce(torch.ones(1000))
        turn += 1
        if turn == 50 and dist.get_rank() == victim:
            os.kill(os.getpid(), signal.SIGKILL)
