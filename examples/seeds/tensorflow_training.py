"""
Join nodes into one cluster of TensorFlow.

Needs tensorflow and `skyward-tensorflow`.
"""

import skyward as sky


@sky.integrations.tensorflow()
@sky.compute
def train() -> tuple[int, int]:
    import json
    import os

    import tensorflow as tf

    workers = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    return len(workers), strategy.num_replicas_in_sync


if __name__ == "__main__":
    with sky.ComputePool(provider=sky.Local(), nodes=2) as pool:
        results = train() @ pool
    print(f"workers and replicas: {results}")
