"""
Train a network to read handwritten digits with Accelerate, on every rank of a pool.

Needs accelerate and scikit-learn, whose package brings the data. The same function runs on rented GPUs.
"""

from typing import Any

import skyward as sky


@sky.function
def train(epochs: int = 30) -> float:
    """
    Train on this rank's share of the images; give the share of unseen images that is read correctly.
    """
    import torch
    from accelerate import Accelerator
    from accelerate.utils import set_seed
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    accelerator = Accelerator()
    set_seed(0)
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    inputs, unseen, targets, answers = (torch.tensor(part) for part in split)
    known: Any = torch.utils.data.TensorDataset(inputs.float(), targets)
    asked: Any = torch.utils.data.TensorDataset(unseen.float(), answers)
    network: Any = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    model, optimiser, batches, tests = accelerator.prepare(
        network,
        torch.optim.Adam(network.parameters(), lr=0.003),
        torch.utils.data.DataLoader(known, batch_size=64 // accelerator.num_processes, shuffle=True),
        torch.utils.data.DataLoader(asked, batch_size=64),
    )
    for epoch in range(epochs):
        for some, expected in batches:
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(some), expected)
            accelerator.backward(loss)
            optimiser.step()
        if (epoch + 1) % 10 == 0:
            mean = float(accelerator.reduce(loss.detach(), "mean"))
            accelerator.print(f"epoch {epoch + 1:2}: loss {mean:.3f} on {accelerator.num_processes} ranks")
    right = [accelerator.gather_for_metrics(model(some).argmax(dim=1) == expected) for some, expected in tests]
    return float(torch.cat(right).float().mean())


if __name__ == "__main__":
    plugin = sky.plugins.accelerate({"mixed_precision": "bf16"})
    with sky.Compute(nodes=2, plugins=[plugin], console="log") as pool:
        accuracies = train() @ pool
    assert len(set(accuracies)) == 1, "all ranks have the same weights"
    print(f"Digits read correctly: {accuracies[0]:.1%}.")
