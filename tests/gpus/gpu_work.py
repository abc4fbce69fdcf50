"""What nodes do on their GPUs, in a module that loads no framework itself."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

import skyward as sky


@sky.function
def visible() -> tuple[str | None, int, str]:
    """Tell which GPUs this process is shown, how many torch sees, and the name of the first."""
    import torch

    return os.environ.get("CUDA_VISIBLE_DEVICES"), torch.cuda.device_count(), torch.cuda.get_device_name(0)


@sky.function
def group() -> tuple[int, int, str, float, float]:
    """Tell rank, size and backend, and what a sum over all ranks gives, on the processor and on the GPU."""
    import torch
    import torch.distributed as dist

    here, there = torch.ones(1), torch.ones(1, device="cuda")
    dist.all_reduce(here)
    dist.all_reduce(there)
    return dist.get_rank(), dist.get_world_size(), str(dist.get_backend_config()), float(here), float(there)


@sky.function
def train(device: str, steps: int = 20) -> tuple[list[float], list[Any]]:
    """Train in float64 on random samples, shared out among the ranks, and return the losses and the weights."""
    import torch
    import torch.distributed as dist

    rank, ranks = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    drawn = torch.Generator().manual_seed(7)
    inputs = torch.rand(64, 32, dtype=torch.float64, generator=drawn)[rank::ranks].to(device)
    targets = torch.randint(10, (64,), generator=drawn)[rank::ranks].to(device)
    torch.manual_seed(0)
    model: Any = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10)).double()
    model = model.to(device)
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
            dist.all_reduce(mean)
        losses.append(float(mean) / ranks)
    return losses, [parameter.detach().cpu().numpy() for parameter in model.parameters()]


@sky.function
def place() -> tuple[int, int]:
    """Tell rank and size, and sum nothing on the GPU."""
    import torch.distributed as dist

    return dist.get_rank(), dist.get_world_size()


def trained_on(epochs: int, dies_after: int, to: str | None = None) -> list[Any]:
    """Train on the GPU, saving after each epoch; the first attempt is killed after one."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 2048), torch.nn.Tanh(), torch.nn.Linear(2048, 1)).double().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    saved = sky.checkpoint(to=to)
    state = saved.load()
    if state is not None:
        assert not any(weights.is_cuda for weights in state["model"].values())
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    inputs = torch.linspace(0, 1, 64, dtype=torch.float64, device="cuda").reshape(8, 8)
    for epoch in range(state["epoch"] if state else 0, epochs):
        optimizer.zero_grad()
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        saved.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1})
        if state is None and epoch + 1 == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
    return [parameter.detach().cpu().numpy() for parameter in model.parameters()]


@sky.function
def killed_holding(gigabytes: int, victim: int) -> None:
    """Fill memory of the GPU on every rank, and kill one of them in the middle of a sum."""
    import torch
    import torch.distributed as dist

    held = torch.ones(gigabytes << 30, dtype=torch.uint8, device="cuda")
    summed = torch.ones(1, device="cuda")
    dist.all_reduce(summed)
    if dist.get_rank() == victim:
        torch.cuda.synchronize()
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(summed)
    torch.cuda.synchronize()
    assert held[0] == 1


@sky.function
def one_raises(who: int) -> None:
    """Raise on one rank, and wait in a sum on the others."""
    import torch
    import torch.distributed as dist

    if dist.get_rank() == who:
        raise ValueError(f"rank {who} does not want to")
    dist.all_reduce(torch.ones(1, device="cuda"))
    torch.cuda.synchronize()


@sky.function
def too_much() -> None:
    """Ask for more memory than any GPU has."""
    import torch

    torch.ones(1 << 42, dtype=torch.uint8, device="cuda")


@sky.function
def ones(count: int) -> Any:
    """Return a tensor that is on the GPU."""
    import torch

    return torch.ones(count, device="cuda")


@sky.function
def total(numbers: Any) -> tuple[str, float]:
    """Tell where a tensor arrived, and what it sums up to."""
    return numbers.device.type, float(numbers.sum())


@sky.function
def busy(seconds: float) -> int:
    """Multiply matrices for some time, and return how many there were."""
    import torch

    left = torch.rand(4096, 4096, device="cuda")
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        left = torch.nn.functional.normalize(left @ left)
        torch.cuda.synchronize()
        done += 1
    return done


@sky.function
def small_steps(seconds: float) -> int:
    """Do what leaves most of a GPU idle, for some time, and return how often."""
    import torch

    numbers = torch.rand(1024, device="cuda")
    done, end = 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(100):
            numbers = torch.sin(numbers)
        torch.cuda.synchronize()
        done += 1
    return done


@sky.function
def multiprocessors() -> int:
    """Return how many of the GPU's multiprocessors this process may use."""
    import torch

    return torch.cuda.get_device_properties(0).multi_processor_count


@sky.function
def allocated(gigabytes: int) -> bool:
    """Return whether so much of the GPU's memory is to be had."""
    import torch

    try:
        held = torch.ones(gigabytes << 30, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        return False
    fits = int(held[-1]) == 1
    del held
    torch.cuda.empty_cache()
    return fits
