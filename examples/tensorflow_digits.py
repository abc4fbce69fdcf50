"""
Train a network to read handwritten digits, data parallel, on every rank of a pool.

Needs TensorFlow and scikit-learn, whose package brings the data. The same function runs on rented GPUs.
"""

from typing import Any

import skyward as sky


@sky.function
def train(epochs: int = 30) -> float:
    """
    Train on this rank's share of the images; give the share of unseen images that is read correctly.
    """
    import keras
    import tensorflow as tf
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    ranks = strategy.num_replicas_in_sync
    images, labels = load_digits(return_X_y=True)
    split = train_test_split(images.astype("float32") / 16, labels, test_size=0.25, random_state=0, stratify=labels)
    inputs, unseen, targets, answers = split

    samples = tf.data.Dataset.from_tensor_slices(sky.shard(inputs, targets, drop_last=True))
    batches = samples.shuffle(2000, seed=0).batch(64 // ranks, drop_remainder=True)
    with strategy.scope():
        model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(128, "relu"), keras.layers.Dense(10)])

    def step(some: Any, expected: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(expected, model(some))
            loss = tf.reduce_mean(losses) / ranks
        replica = tf.distribute.get_replica_context()
        gradients = tape.gradient(loss, model.trainable_variables)
        gradients = replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        for weight, gradient in zip(model.trainable_variables, gradients, strict=True):
            weight.value.assign_sub(0.5 * gradient)
        return replica.all_reduce(tf.distribute.ReduceOp.SUM, loss)

    shared = tf.function(lambda some, expected: strategy.run(step, (some, expected)))
    for epoch in range(epochs):
        losses = [float(shared(some, expected)) for some, expected in batches]
        if sky.is_head() and (epoch + 1) % 10 == 0:
            print(f"epoch {epoch + 1:2}: loss {losses[-1]:.3f} on {ranks} ranks")
    return float((model(unseen).numpy().argmax(axis=1) == answers).mean())


if __name__ == "__main__":
    with sky.Compute(nodes=2, plugins=[sky.plugins.tensorflow()], console="log") as pool:
        accuracies = train() @ pool
    assert len(set(accuracies)) == 1, "all ranks have the same weights"
    print(f"Digits read correctly: {accuracies[0]:.1%}.")
