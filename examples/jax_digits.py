"""
Train a network to read handwritten digits with JAX, data parallel, on every rank of a pool.

Needs jax and scikit-learn, whose package brings the data. The same function runs on rented GPUs.
"""

from typing import Any

import skyward as sky


@sky.function
def train(epochs: int = 12) -> float:
    """
    Train with a part of each batch on every rank; give the share of unseen images that is read correctly.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    inputs, unseen, targets, answers = (np.asarray(part, dtype) for part, dtype in zip(split, "ffii", strict=True))

    shared = NamedSharding(jax.make_mesh((jax.device_count(),), ("batch",)), PartitionSpec("batch"))
    sizes = enumerate([(64, 128), (128, 10)])
    model: Any = [(jax.random.normal(jax.random.key(seed), size) * 0.1, jnp.zeros(size[1])) for seed, size in sizes]
    model = jax.device_put(model, NamedSharding(shared.mesh, PartitionSpec()))

    def outputs(model: Any, some: Any) -> Any:
        (first, bias), (second, last) = model
        return jax.nn.relu(some @ first + bias) @ second + last

    def mean(model: Any, some: Any, expected: Any) -> Any:
        return -jnp.take_along_axis(jax.nn.log_softmax(outputs(model, some)), expected[:, None], axis=1).mean()

    @jax.jit
    def step(model: Any, *batch: Any) -> Any:
        loss, slopes = jax.value_and_grad(mean)(model, *batch)
        return jax.tree.map(lambda weight, slope: weight - 0.5 * slope, model, slopes), loss

    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(inputs))
        for some in np.array_split(order[:1344], 21):
            mine = some[jax.process_index() :: jax.process_count()]
            parts = (jax.make_array_from_process_local_data(shared, all_[mine]) for all_ in (inputs, targets))
            model, loss = step(model, *parts)
        if sky.is_head() and (epoch + 1) % 4 == 0:
            print(f"epoch {epoch + 1:2}: loss {float(loss):.3f} on {jax.device_count()} devices")
    return float((outputs(model, unseen).argmax(axis=1) == answers).mean())


if __name__ == "__main__":
    with sky.Compute(nodes=2, plugins=[sky.plugins.jax()], console="log") as pool:
        accuracies = train() @ pool
    assert len(set(accuracies)) == 1, "all ranks have the same weights"
    print(f"Digits read correctly: {accuracies[0]:.1%}.")
