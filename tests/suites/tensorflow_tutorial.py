"""
What TensorFlow's tutorial of a custom training loop on several workers does, with digits that need no download.

A dataset that the strategy shares out, a step under `strategy.run`, losses by `strategy.reduce`, and a checkpoint that
the chief keeps and every worker restores. It is run on a pool, and by processes that are given a `TF_CONFIG` by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def _digits(batch: int) -> Any:
    import tensorflow as tf
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    found = tf.data.Dataset.from_tensor_slices(((images[:512] / 16).astype("float32"), labels[:512])).batch(batch)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return found.with_options(options)


def train(directory: str, epochs: int) -> tuple[int, list[float], list[float]]:
    """
    Train until an epoch, from where the last checkpoint was.

    Returns:
        The epoch that the checkpoint was of, the losses of the epochs since, and a sum for each weight.
    """
    import keras
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    task_id = strategy.cluster_resolver.task_id or 0
    batch = 32 * strategy.num_replicas_in_sync
    keras.utils.set_random_seed(1)
    with strategy.scope():
        dataset = strategy.experimental_distribute_dataset(_digits(batch))
        layers = [keras.Input((64,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(10)]
        model = keras.Sequential(layers)
        optimizer = keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)
        epoch = tf.Variable(0, dtype=tf.int64, name="epoch")

    def step(inputs: Any, targets: Any) -> Any:
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, model(inputs, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=batch)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def whole_step(each: Any) -> Any:
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=each), axis=None)

    checkpoint = tf.train.Checkpoint(model=model, epoch=epoch)
    if newest := tf.train.latest_checkpoint(directory):
        checkpoint.restore(newest)
    # All have to save, since variables are read together; what others than the chief write is thrown away.
    own = directory if task_id == 0 else str(Path(directory, f"worker-{task_id}"))
    manager = tf.train.CheckpointManager(checkpoint, own, max_to_keep=1)
    first, losses = int(epoch.numpy()), []
    while int(epoch.numpy()) < epochs:
        losses.append(sum(float(whole_step(each)) for each in dataset))
        epoch.assign_add(1)
        manager.save()
    return first, losses, [float(weight.numpy().sum()) for weight in model.trainable_variables]


if __name__ == "__main__":
    print(json.dumps(train(sys.argv[1], int(sys.argv[2]))))
