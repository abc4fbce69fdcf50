"""
Keras's `fit`, `evaluate` and `predict` on three backends: the same small model gives the same on each.
"""

from __future__ import annotations

from typing import Any

import pytest

import skyward as sky

pytestmark = [pytest.mark.suites, pytest.mark.timeout(900)]


@sky.function
def fits() -> tuple[list[float], float, float]:
    """Train on the same samples in every process, and tell losses, the last evaluation, and a sum of predictions."""
    import keras
    import numpy as np

    random = np.random.default_rng(0)
    inputs = random.normal(size=(32, 8)).astype("float32")
    targets = inputs[:, :4] - inputs[:, 4:]
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(4)])
    model.set_weights([random.normal(scale=0.1, size=weight.shape) for weight in model.get_weights()])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    losses = model.fit(inputs, targets, batch_size=8, epochs=3, shuffle=False, verbose=0).history["loss"]
    return (
        losses,
        float(model.evaluate(inputs, targets, batch_size=8, verbose=0)),
        float(model.predict(inputs, batch_size=8, verbose=0).sum()),
    )


def on(backend: str) -> list[Any]:
    with sky.Compute(nodes=2, plugins=[sky.plugins.keras(backend=backend)], console="silent") as pool:
        return [*(fits() @ pool), fits() >> pool]


def test_three_backends_give_the_same() -> None:
    """On each rank, where all ranks give the same samples, and in a call of one rank; to 1e-3."""
    found = {backend: on(backend) for backend in ("jax", "torch", "tensorflow")}
    expected, evaluated, predicted = found["jax"][-1]
    assert expected[-1] < expected[0]
    for backend, ranks in found.items():
        for losses, evaluation, prediction in ranks:
            assert pytest.approx(expected, rel=1e-3) == losses, backend
            assert pytest.approx(evaluated, rel=1e-3) == evaluation, backend
            assert pytest.approx(predicted, rel=1e-2, abs=1e-2) == prediction, backend
