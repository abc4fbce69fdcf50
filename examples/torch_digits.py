"""
Train a network to read handwritten digits, data parallel, on every rank of a pool.

Needs torch and scikit-learn, whose package brings the data. The same function runs on rented GPUs.
"""

from typing import Any

import skyward as sky


@sky.function
def train(epochs: int = 30) -> float:
    """
    Train on this rank's share of the images; give the share of unseen images that is read correctly.
    """
    import torch
    import torch.distributed as dist
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    inputs, unseen, targets, answers = (torch.tensor(part, device=device) for part in split)

    samples: Any = torch.utils.data.TensorDataset(inputs.float(), targets)
    sampler = sky.DistributedSampler(samples, shuffle=True)
    batches = torch.utils.data.DataLoader(samples, batch_size=64 // dist.get_world_size(), sampler=sampler)
    model: Any = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).to(device)
    shared = torch.nn.parallel.DistributedDataParallel(model)
    optimiser = torch.optim.Adam(shared.parameters(), lr=0.003)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for some, expected in batches:
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(shared(some), expected)
            loss.backward()
            optimiser.step()
        dist.all_reduce(mean := loss.detach() / dist.get_world_size())
        if sky.is_head() and (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:2}: loss {float(mean):.3f} on {dist.get_world_size()} ranks")
    return float((model(unseen.float()).argmax(dim=1) == answers).float().mean())


if __name__ == "__main__":
    with sky.Compute(nodes=2, per_node=2, plugins=[sky.plugins.torch()], console="log") as pool:
        accuracies = train() @ pool
    assert len(set(accuracies)) == 1, "all ranks have the same weights"
    print(f"Digits read correctly: {accuracies[0]:.1%}.")
