"""
Has a rank on JAX predict and save by itself.

`predict` returns the rows of a rank's own share: Keras makes one array of what it gets from the devices of all ranks,
and a rank can only read its own part.
Saving makes a variable of its own, only to see what attributes it has; on the devices of all ranks that would be a
meeting, to which the others do not come.
What is relied on here is held by the suite `frameworks`.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import jax
import keras
import numpy as np
from keras.src.backend.jax.trainer import JAXTrainer
from keras.src.saving import saving_lib

__all__ = ["own_rows", "prepare"]


def prepare() -> None:
    """Make predictions and what is saved a rank's own; once in a process."""
    if not hasattr(JAXTrainer.make_predict_function, "__wrapped__"):
        _predict_own()
        _save_alone()


def _save_alone() -> None:
    original = saving_lib.get_attr_skipset

    @wraps(original)
    def get_attr_skipset(*args: Any, **kwargs: Any) -> Any:
        shared = keras.distribution.distribution()
        keras.distribution.set_distribution(None)
        try:
            return original(*args, **kwargs)
        finally:
            keras.distribution.set_distribution(shared)

    saving_lib.get_attr_skipset = get_attr_skipset


def _predict_own() -> None:
    original = JAXTrainer.make_predict_function

    @wraps(original)
    def make_predict_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = original(self, *args, **kwargs)
        predict = self.predict_function
        if not hasattr(predict, "__wrapped__"):

            @wraps(predict)
            def predict_own(state: Any, iterator: Any) -> Any:
                outputs, state = predict(state, iterator)
                return keras.tree.map_structure(own_rows, outputs), state

            self.predict_function = predict_own
        return made

    JAXTrainer.make_predict_function = make_predict_function


def own_rows(array: Any) -> Any:
    """
    Return the part of an array that is on this rank's devices, in order; all of it if that is everything.

    Args:
        array: The array.
    """
    if not isinstance(array, jax.Array) or array.is_fully_addressable:
        return array
    if array.is_fully_replicated:
        return np.asarray(array)
    shards = {shard.index[0].start or 0: np.asarray(shard.data) for shard in array.addressable_shards}
    return np.concatenate([shards[start] for start in sorted(shards)])
