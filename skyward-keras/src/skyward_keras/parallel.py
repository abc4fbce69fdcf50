"""
Has Keras on JAX train on the devices of all ranks, with the same seed on each.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import keras

from skyward import instance_info
from skyward_keras.seeds import seed_of

__all__ = ["PARALLEL"]


class Parallel:
    """Hold what Keras had last in this process."""

    def __init__(self) -> None:
        self._shared = False

    @contextmanager
    def around(self) -> Iterator[None]:
        """Set the call's devices as those that Keras trains on."""
        info = instance_info()
        if not info.broadcast or info.total_workers == 1:
            if self._shared:
                # Keras draws from a generator that it keeps on devices, which are gone.
                keras.utils.set_random_seed(secrets.randbits(32))
                self._shared = False
            yield
            return
        self._shared = True
        # Weights begin the same on all ranks.
        keras.utils.set_random_seed(seed_of(info))
        # A rank gives its own share of the data; only tf.data could be shared out by Keras.
        with keras.distribution.DataParallel(auto_shard_dataset=False).scope():
            yield


PARALLEL = Parallel()
"""What Keras has in this process."""
