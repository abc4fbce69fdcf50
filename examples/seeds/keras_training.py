"""
Fit a Keras model on all nodes.

The plugin of a pool says the same for all functions: `plugins=[sky.plugins.keras(backend="jax")]`.

Needs keras, jax, `skyward-keras` and `skyward-jax`.
"""

from typing import Any

import skyward as sky


@sky.integrations.keras(backend="jax")
@sky.compute
def train() -> tuple[str, bool]:
    import keras
    import numpy as np

    x = np.linspace(-1.0, 1.0, 32, dtype="float32").reshape(-1, 1)
    y = 3.0 * x
    model: Any = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.2), loss="mse")
    history = model.fit(x, y, batch_size=8, epochs=5, verbose=0).history["loss"]
    return str(keras.backend.backend()), history[-1] < history[0]


if __name__ == "__main__":
    with sky.ComputePool(provider=sky.Local(), nodes=2) as pool:
        decorated = train() @ pool
    print(f"backend and progress: {decorated}")
