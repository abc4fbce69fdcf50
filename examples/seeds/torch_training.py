"""
Train with PyTorch: on one node, on all of them by a decorator, and on all of them by the pool's plugin.

Needs torch and `skyward-torch`. On machines with GPUs, write "nccl" for the backend, and "cuda" for the device.
"""

import skyward as sky


@sky.compute
def train(epochs: int) -> dict[str, float]:
    import torch

    model = torch.nn.Linear(20, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    samples = torch.ones(8, 20)
    first = 0.0
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = (model(samples) - 3.0).square().mean()
        loss.backward()
        optimizer.step()
        first = first or loss.item()
    return {"first_loss": first, "final_loss": loss.item()}


@sky.integrations.torch(backend="gloo")
@sky.compute
def train_distributed() -> tuple[bool, int]:
    import os

    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817
    from torch.utils.data import DataLoader

    model = DDP(torch.nn.Linear(2, 1))
    dataset = torch.arange(32.0).view(16, 2)
    sampler = sky.DistributedSampler(dataset, shuffle=True)
    seen = 0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for batch in DataLoader(dataset, batch_size=4, sampler=sampler):
            model(batch).sum().backward()
            seen += len(batch)
    assert all(name in os.environ for name in ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"))
    return dist.is_initialized(), seen


@sky.function
def train_by_hand() -> str | None:
    import torch
    import torch.distributed as dist

    dist.init_process_group(backend="gloo")
    info = sky.instance_info()
    ranks = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(ranks)
    assert ranks.item() == 1.0
    dist.destroy_process_group()
    return "done" if sky.is_head(info) else None


@sky.pool(provider=sky.Local(), nodes=2)
def main() -> tuple[dict[str, float], list[tuple[bool, int]]]:
    return train(epochs=60) >> sky, train_distributed() @ sky


if __name__ == "__main__":
    alone, together = main()
    with sky.Compute(
        provider=sky.Local(),
        nodes=2,
        plugins=[sky.plugins.torch(backend="gloo", cuda="cu128")],
    ) as pool:
        by_hand = train_by_hand() @ pool
    learned = alone["final_loss"] < alone["first_loss"] / 10
    print(f"learned: {learned} | initialised, samples seen: {together} | by hand: {by_hand}")
