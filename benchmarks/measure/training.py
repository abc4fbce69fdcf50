"""
A step of data-parallel training on two ranks of this machine, beside torchrun.

usage: python -m measure.training skyward|torchrun|rank
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from typing import Any

from measure.harness import HERE, Job, Results, answer, in_frameworks, number
from measure.table import Criterion, Number, Row, milliseconds

RANKS = 2
WARM, STEPS = 30, 300
WIDTH, BATCH = 512, 64

# Both have one thread for each rank, as torchrun has by itself.
THREADS = {"OMP_NUM_THREADS": "1"}


def steps() -> float:
    """
    Train a network of half a million weights, and give the median time of a step in milliseconds.
    """
    import torch

    torch.manual_seed(0)
    layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH)]
    model: Any = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(BATCH, WIDTH), torch.randn(BATCH, WIDTH)
    times = []
    for step in range(WARM + STEPS):
        started = time.perf_counter()
        optimiser.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimiser.step()
        if step >= WARM:
            times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e3


def rank() -> None:
    """
    Be one of torchrun's ranks.
    """
    import torch.distributed as dist

    dist.init_process_group("gloo")
    median = steps()
    if dist.get_rank() == 0:
        answer({"step_ms": median})
    dist.destroy_process_group()


def measure_torchrun() -> None:
    """
    Have torchrun start the ranks, on the interface that ours use.
    """
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]
    environment = {**os.environ, **THREADS, "PYTHONPATH": str(HERE), "GLOO_SOCKET_IFNAME": "lo"}
    subprocess.run([*command, "-m", "measure.training", "rank"], env=environment, check=True)


def measure_skyward() -> dict[str, float]:
    """
    Train on two nodes of this machine.
    """
    import skyward as sky

    image = sky.Image(env=THREADS)
    with sky.Compute(nodes=RANKS, image=image, plugins=[sky.plugins.torch()], console="silent") as pool:
        return {"step_ms": (sky.function(steps)() @ pool)[0]}


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    return {f"training {name}": in_frameworks("measure.training", name) for name in ("torchrun", "skyward")}


def rows(results: Results) -> list[Row]:
    """
    Judge the step.
    """
    ours, theirs = (_spread(results, f"training {name}") for name in ("skyward", "torchrun"))
    return [
        Row(
            what=f"a step of data-parallel training, {RANKS} ranks, half a million weights",
            limit=f"{milliseconds(theirs)} with torchrun",
            ours=milliseconds(ours),
            criteria=(Criterion("torchrun", ours.over(theirs), at_most=1.05),),
            bounded_by="torch and gloo; nothing of ours runs within a step",
        ),
    ]


def _spread(results: Results, name: str) -> Number:
    """
    Take the median, and note between which the rounds were.
    """
    found = number(results, name, "step_ms")
    if found.value is None:
        return found
    seen = [values["step_ms"] for values in results[name].values]
    return Number(value=found.value, note=f"{min(seen):.2f} to {max(seen):.2f}" if len(seen) > 1 else None)


if __name__ == "__main__":
    {"rank": rank, "torchrun": measure_torchrun}.get(sys.argv[1], lambda: None)()
    if sys.argv[1] == "skyward":
        answer(measure_skyward())
