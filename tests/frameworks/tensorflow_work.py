"""
What nodes do with TensorFlow, in a module that needs nothing a node of its own environment lacks.
"""

from __future__ import annotations

import os
from typing import Any

import skyward as sky

Step = tuple[list[float], list[Any]]


def train(strategy: Any, rank: int, ranks: int, *, steps: int = 20) -> Step:
    """Train in float64 on the same 64 digits in each step, shared out among the ranks."""
    import tensorflow as tf
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    inputs, targets = tf.constant(images[:64][rank::ranks] / 16), tf.constant(labels[:64][rank::ranks])
    random = tf.random.Generator.from_seed(7)
    with strategy.scope():
        weights = [tf.Variable(random.normal(shape, stddev=0.1, dtype=tf.float64)) for shape in ((64, 32), (32, 10))]

    def one_step() -> Any:
        with tf.GradientTape() as tape:
            found = tf.tanh(inputs @ weights[0]) @ weights[1]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(targets, found)
            loss = tf.reduce_sum(losses) / 64
        replica = tf.distribute.get_replica_context()
        gradients = replica.all_reduce(tf.distribute.ReduceOp.SUM, tape.gradient(loss, weights))
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.assign_sub(0.5 * gradient)
        return replica.all_reduce(tf.distribute.ReduceOp.SUM, loss)

    step = tf.function(lambda: strategy.run(one_step))
    losses = [float(step()) for _ in range(steps)]
    return losses, [weight.numpy() for weight in weights]


@sky.function
def train_together() -> Step:
    import tensorflow as tf

    info = sky.instance_info()
    return train(tf.distribute.MultiWorkerMirroredStrategy(), info.global_worker_index, info.total_workers)


@sky.function
def train_alone() -> Step:
    import tensorflow as tf

    return train(tf.distribute.get_strategy(), 0, 1)


@sky.function
def world() -> tuple[int, int, float]:
    """Tell the process, how many replicas there are, and what a sum over all gives."""
    import tensorflow as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def add() -> Any:
        return tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, tf.ones([]))

    return os.getpid(), strategy.num_replicas_in_sync, float(strategy.run(tf.function(add)))
