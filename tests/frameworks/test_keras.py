"""
Real training with Keras on nodes of this machine, on two backends.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(300)]

STEPS = 10


def share(rank: int, ranks: int) -> tuple[Any, Any]:
    """Give a rank's part of 64 digits."""
    import numpy as np
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return np.float32(images[rank:64:ranks] / 16), np.int64(labels[rank:64:ranks])


def digits() -> Any:
    """Make the same small model everywhere, with the same weights."""
    import keras
    import numpy as np

    layers = keras.layers
    model = keras.Sequential([keras.Input((64,)), layers.Dense(32, activation="tanh"), layers.Dense(10)])
    random = np.random.default_rng(0)
    model.set_weights([random.normal(scale=0.1, size=weight.shape) for weight in model.get_weights()])
    return model


@sky.function
def fits() -> list[float]:
    """Train as Keras does by itself, each rank with its share."""
    import keras

    info = sky.instance_info()
    ranks = info.total_workers if info.broadcast else 1
    inputs, targets = share(info.global_worker_index if info.broadcast else 0, ranks)
    model = digits()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.SGD(0.5), loss=loss)
    return list(
        model.fit(inputs, targets, batch_size=64 // ranks, epochs=STEPS, shuffle=False, verbose=0).history["loss"]
    )


@sky.function
def fits_longer(who: int) -> None:
    """Train for one batch more on one rank."""
    import keras

    rank = sky.instance_info().global_worker_index
    inputs, targets = share(rank, 2)
    model = digits()
    model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batches = 4 if rank == who else 3
    model.fit(inputs[: 8 * batches], targets[: 8 * batches], batch_size=8, epochs=1, verbose=0)


@sky.function
def distributes_itself() -> tuple[int, bool]:
    """Do what a script does that was written without us."""
    import keras

    keras.distribution.initialize()
    mine = keras.distribution.DataParallel(auto_shard_dataset=False)
    keras.distribution.set_distribution(mine)
    model = digits()
    model.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    inputs, targets = share(sky.instance_info().global_worker_index, 2)
    losses = model.fit(inputs, targets, batch_size=32, epochs=2, verbose=0).history["loss"]
    return len(keras.distribution.list_devices()), losses[1] < losses[0]


@sky.function
def trains_with_torch() -> list[float]:
    """Train as Keras's guide to torch does: the model in a DistributedDataParallel, in a loop of one's own."""
    import torch
    import torch.distributed as dist

    inputs, targets = map(torch.tensor, share(dist.get_rank(), dist.get_world_size()))
    shared = torch.nn.parallel.DistributedDataParallel(digits())
    optimiser = torch.optim.SGD(shared.parameters(), lr=0.5)
    losses = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(shared(inputs), targets)
        loss.backward()
        optimiser.step()
        dist.all_reduce(mean := loss.detach() / dist.get_world_size())
        losses.append(float(mean))
    return losses


@sky.function
def begins() -> tuple[int, list[float]]:
    """Draw weights and a number, for which no seed was set."""
    import keras

    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
    drawn = [float(weight.sum()) for weight in model.get_weights()]
    return keras.distribution.get_device_count(), [*drawn, float(keras.random.normal((1,))[0])]


@sky.function
def makes_a_layer() -> str:
    """Make a layer in one process, so that its next ones have other numbers."""
    import keras

    return str(keras.layers.Dense(2).name)


@sky.function
def predicts() -> tuple[float, int]:
    """Predict one's own share, and tell how far it is from what the weights say."""
    import keras
    import numpy as np

    inputs, _ = share(sky.instance_info().global_worker_index, 2)
    model = digits()
    found = model.predict(inputs, batch_size=8, verbose=0)
    first, shift, last, end = map(keras.ops.convert_to_numpy, model.get_weights())
    expected = np.tanh(inputs @ first + shift) @ last + end
    return float(np.abs(found - expected).max()), len(found)


@sky.function
def saves(directory: str) -> float:
    """Train, and save on the head alone; then all load."""
    import keras
    import numpy as np

    inputs, targets = share(sky.instance_info().global_worker_index, 2)
    model = digits()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss=loss)
    model.fit(inputs, targets, batch_size=8, epochs=2, verbose=0)
    path = Path(directory) / "model.keras"
    if sky.is_head():
        model.save(path.with_suffix(".part.keras"))
        path.with_suffix(".part.keras").rename(path)
    while not path.exists():
        time.sleep(0.02)
    loaded = keras.models.load_model(path)
    pairs = zip(model.get_weights(), loaded.get_weights(), strict=True)
    return max(float(np.abs(mine - theirs).max()) for mine, theirs in pairs)


@sky.function
def backend() -> str:
    import keras

    return str(keras.backend.backend())


def fresh(name: str) -> Any:
    return sky.Compute(nodes=2, plugins=[sky.plugins.keras(backend=name)], console="silent")


# To load Keras takes seconds of a processor in each process, so that tests share those that have it.


@pytest.fixture(scope="module")
def on_jax() -> Iterator[sky.Pool]:
    """Two nodes with JAX below Keras."""
    with fresh("jax") as pool:
        yield pool


@pytest.fixture(scope="module")
def on_torch() -> Iterator[sky.Pool]:
    """Two nodes with torch below Keras."""
    with fresh("torch") as pool:
        yield pool


@pytest.mark.everything
def test_a_model_has_the_same_losses_on_two_backends() -> None:
    """Two ranks on each; JAX's give what one process gives, torch's what JAX's do, and all of them learn."""
    with fresh("jax") as pool:
        (first, second), alone = fits() @ pool, fits() >> pool
    with fresh("torch") as pool:
        assert ["torch", "torch"] == backend() @ pool
        torch, same = trains_with_torch() @ pool
    assert (first, torch) == (second, same)
    assert first[-1] < 0.8 * first[0]
    assert pytest.approx(first, rel=1e-4) == alone
    assert pytest.approx(first, rel=1e-4) == torch


@pytest.mark.everything
def test_ranks_draw_the_same_weights_and_each_broadcast_others() -> None:
    """On the devices of all; and a call beside them goes on, whose generator was on devices that are gone."""
    with fresh("jax") as pool:
        (devices, drawn), same = begins() @ pool
        assert (2, drawn) == (devices, same[1])
        assert 1 == (begins() >> pool)[0]
        again, _ = begins() @ pool
        assert drawn != again[1]


def test_predictions_and_a_saved_model_are_a_ranks_own(on_jax: sky.Pool) -> None:
    """Each gets the rows that it asked for, and the head alone writes what all can read."""
    with tempfile.TemporaryDirectory() as directory:
        for distance, rows in predicts().with_timeout(90) @ on_jax:
            assert (32, True) == (rows, distance < 1e-5)
        assert [True, True] == [distance < 1e-6 for distance in saves(directory).with_timeout(90) @ on_jax]


def test_a_layer_that_one_rank_made_before_changes_no_names(on_torch: sky.Pool) -> None:
    """Ranks number their layers alike, by which torch orders parameters."""
    makes_a_layer() >> on_torch
    first, second = trains_with_torch() @ on_torch
    assert first == second
    assert first[-1] < 0.8 * first[0]
    assert ["dense", "dense"] == makes_a_layer() @ on_torch


def test_a_process_that_has_another_backend_is_not_used(on_torch: sky.Pool) -> None:
    """Keras chooses once, when it is loaded."""
    with pytest.raises(sky.PluginError, match="Keras is loaded on 'torch' in this process"):
        sky.integrations.keras(backend="jax")(backend)() >> on_torch


def test_code_that_distributes_keras_itself_runs_as_it_is(on_jax: sky.Pool) -> None:
    """It asks for the world that is there, and for a distribution of its own over it."""
    assert [(2, True)] * 2 == distributes_itself() @ on_jax
    assert [(2, True)] * 2 == distributes_itself() @ on_jax


@pytest.mark.everything
def test_a_rank_that_has_fewer_batches_ends_the_others_by_the_backends_limit() -> None:
    """One goes on alone in `fit`, and is where it waits."""
    plugins = [sky.plugins.jax(hang_timeout=30), sky.plugins.keras(backend="jax")]
    with sky.Compute(nodes=2, plugins=plugins, console="silent") as pool:
        assert 2 == len(fits() @ pool)
        with pytest.raises(sky.HangError, match=r"rank 0: returned(.|\n)*rank 1: .*fits_longer") as caught:
            fits_longer(1) @ pool
        assert "fit" in caught.value.stacks[1]
        assert 2 == len(fits() @ pool)


def test_a_version_that_does_not_exist_is_one_clear_error(tmp_path: Path) -> None:
    """It names the package and the version."""
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "index.html").write_text("<!DOCTYPE html><html><body></body></html>")
    image = sky.Image(pip_indexes=[sky.PipIndex(f"file://{tmp_path}", ["keras"])])
    plugins = [sky.plugins.jax(), sky.plugins.keras(backend="jax", version="99.0")]
    with (
        pytest.raises(sky.SkywardError, match=r"keras==99\.0") as caught,
        sky.Compute(plugins=plugins, image=image, console="silent"),
    ):
        raise AssertionError
    assert "or what a plugin was given for version=" in str(caught.value)


def test_one_function_can_have_the_plugin() -> None:
    """Where Keras is not loaded yet."""
    with sky.Compute(console="silent") as pool:
        assert "torch" == sky.integrations.keras(backend="torch")(backend)() >> pool
