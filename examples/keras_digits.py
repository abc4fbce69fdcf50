"""
Train a network to read handwritten digits with Keras on JAX, on every rank of a pool.

Needs keras, jax and scikit-learn, whose package brings the data. The same function runs on rented GPUs.
"""

import skyward as sky


@sky.function
def train(epochs: int = 15) -> float:
    """
    Train with this rank's share of the images; give the share of unseen images that all ranks read correctly.
    """
    import keras
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    # Keras takes a rank's own share; all ranks have to have as many batches.
    rank, ranks = sky.instance_info().global_worker_index, sky.instance_info().total_workers
    inputs, unseen, targets, answers = (part[: len(part) // 64 * 64][rank::ranks] for part in split)

    layers = [keras.Input((64,)), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)]
    model = keras.Sequential(layers)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(0.003), loss=loss, metrics=["accuracy"])
    history = model.fit(inputs, targets, batch_size=64 // ranks, epochs=epochs, verbose=0)
    if sky.is_head():
        print(f"loss {history.history['loss'][-1]:.3f} on {keras.distribution.get_device_count()} devices")
    return float(model.evaluate(unseen, answers, batch_size=64 // ranks, verbose=0)[1])


if __name__ == "__main__":
    plugins = [sky.plugins.keras(backend="jax")]
    with sky.Compute(nodes=2, plugins=plugins, console="log") as pool:
        accuracies = train() @ pool
    assert len(set(accuracies)) == 1, "all ranks have the same weights"
    print(f"Digits read correctly: {accuracies[0]:.1%}.")
