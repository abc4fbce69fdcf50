"""Checkpoints of torch: a training that is killed ends where one that is not does, and nothing is copied."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import skyward as sky

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(180)]


def trained(epochs: int, dies_after: int, to: str | None = None) -> list[Any]:
    """Train with momentum, saving after each epoch; the first attempt is killed after one."""
    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 2048), torch.nn.Tanh(), torch.nn.Linear(2048, 1)).double()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    saved = sky.checkpoint(to=to)
    state = saved.load()
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    inputs = torch.linspace(0, 1, 64, dtype=torch.float64).reshape(8, 8)
    for epoch in range(state["epoch"] if state else 0, epochs):
        optimizer.zero_grad()
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        loss.backward()
        optimizer.step()
        saved.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch + 1})
        if state is None and epoch + 1 == dies_after:
            os.kill(os.getpid(), signal.SIGKILL)
    return [parameter.detach().numpy() for parameter in model.parameters()]


@pytest.mark.parametrize("place", ["client", "folder"])
def test_a_training_that_is_killed_ends_where_it_would_have(place: str, tmp_path: Path) -> None:
    """Model and optimizer go on from what was saved."""
    to = str(tmp_path / "kept") if place == "folder" else None
    with sky.Compute(console="silent") as pool:
        once = sky.function(trained)(5, 0) >> pool
        twice = sky.function(retries=1)(trained)(5, 3, to) >> pool
    for expected, found in zip(once, twice, strict=True):
        assert (expected == found).all()


def kept(value: Any, folder: Path) -> Any:
    """Save and load."""
    saved = sky.checkpoint(key="run", to=folder / "kept")
    saved.save(value)
    return saved.load()


def test_tensors_come_as_they_went(tmp_path: Path) -> None:
    """Of each kind: parameters, those with gradients, views, types, sparse ones."""
    import torch

    tensors = {
        "large": torch.arange(100_000),
        "half": torch.ones(70_000, dtype=torch.bfloat16),
        "flags": torch.ones(90_000, dtype=torch.bool),
        "parameter": torch.nn.Parameter(torch.ones(300, 300)),
        "gradients": torch.ones(300, 300, requires_grad=True),
        "transposed": torch.arange(90_000).reshape(300, 300).T,
        "conjugate": torch.ones(300, 300, dtype=torch.complex64).conj(),
        "scalar": torch.tensor(7),
        "empty": torch.empty(0, 3),
        "sparse": torch.eye(300).to_sparse(),
    }
    found = kept(tensors, tmp_path)
    for name, before in tensors.items():
        after = found[name]
        assert type(before) is type(after), name
        assert (before.dtype, before.shape, before.requires_grad) == (after.dtype, after.shape, after.requires_grad)
        assert torch.equal(before.to_dense(), after.to_dense()), name
    found["large"] += 1
    assert torch.equal(tensors["large"] + 1, found["large"])


def test_parameters_are_written_from_where_they_are() -> None:
    """Those of a module itself, too, which torch's own pickling would copy."""
    import numpy as np
    import torch

    from skyward.node.data.checkpoint_file import Pieces, write_version

    module = torch.nn.Linear(1000, 1000)
    begin, size = module.weight.data_ptr(), module.weight.nbytes
    mine: list[int] = []

    def write(pieces: Pieces) -> None:
        mine.extend(
            len(piece) for piece in pieces if begin <= np.frombuffer(piece, np.uint8).ctypes.data < begin + size
        )

    write_version(module, write)
    assert size == sum(mine)
