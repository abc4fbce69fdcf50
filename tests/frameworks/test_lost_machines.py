"""A training that loses its machine again and again ends where an undisturbed one does, and computes about as long."""

from __future__ import annotations

import os
import signal
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import skyward as sky

pytestmark = [pytest.mark.frameworks, pytest.mark.everything, pytest.mark.timeout(240)]

EPOCHS = 24
LOSSES = (4, 11, 18)


def train(epochs: int, losses: tuple[int, ...], log: str) -> dict[str, Any]:
    """Train a classifier of handwritten digits; the machine is lost in the middle of each of some epochs, once."""
    import torch
    from sklearn.datasets import load_digits

    torch.manual_seed(0)
    torch.set_num_threads(1)
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    model = torch.nn.Sequential(
        torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

    def note(what: str) -> None:
        with open(log, "a") as file:
            file.write(f"{what} {time.process_time()}\n")

    note("begin")
    saved = sky.checkpoint()
    state = saved.load({"epoch": 0, "model": model.state_dict(), "optimizer": optimizer.state_dict()})
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    lost = sum(line.startswith("lost") for line in Path(log).read_text().splitlines())
    total = 0.0
    for epoch in range(state["epoch"], epochs):
        # What is drawn belongs to the epoch, so that one that is begun anew draws the same.
        order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(epoch))
        total = 0.0
        for number, rows in enumerate(order.split(16)):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(inputs[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
            if lost < len(losses) and epoch == losses[lost] and number == 56:
                note("lost")
                os.kill(os.getppid(), signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
        saved.save({"epoch": epoch + 1, "model": model.state_dict(), "optimizer": optimizer.state_dict()})
    note("end")
    return {
        "loss": total / len(inputs),
        "accuracy": float((model(inputs).argmax(1) == labels).float().mean()),
        "weights": [parameter.detach().numpy() for parameter in model.parameters()],
    }


def seconds_of_work(log: Path) -> float:
    """Sum the processor's seconds from each beginning to the loss or the end after it: without the machines' boots."""
    times = [(what, float(at)) for what, at in (line.split() for line in log.read_text().splitlines())]
    return sum(after - before for (what, before), (_, after) in pairwise(times) if what == "begin")


def test_a_training_that_loses_its_machine_three_times(tmp_path: Path) -> None:
    """It has the same loss, the same weights, and computed at most 1.3 times as long, apart from the boots."""
    heard: list[Any] = []
    with sky.Compute(console="silent", on_event=heard.append) as pool:
        calm = sky.function(train)(EPOCHS, (), str(tmp_path / "calm")) >> pool
        rough = sky.function(train)(EPOCHS, LOSSES, str(tmp_path / "rough")) >> pool
    assert ["agent"] * len(LOSSES) == [event.cause for event in heard if isinstance(event, sky.InstancePreempted)]
    assert calm["loss"] == rough["loss"]
    assert calm["accuracy"] == rough["accuracy"] > 0.99
    assert all((before == after).all() for before, after in zip(calm["weights"], rough["weights"], strict=True))
    undisturbed, took = seconds_of_work(tmp_path / "calm"), seconds_of_work(tmp_path / "rough")
    print(f"loss {rough['loss']:.6f}, {undisturbed:.2f} s undisturbed, {took:.2f} s with {len(LOSSES)} losses")
    assert took <= 1.3 * undisturbed
