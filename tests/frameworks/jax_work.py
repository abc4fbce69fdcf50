"""
What nodes do with JAX, in a module that needs nothing a node of its own environment lacks.
"""

from __future__ import annotations

import os
import signal

import skyward as sky

World = tuple[int, int, int, int, float]


def summed(each: float = 1.0) -> float:
    """Sum something over all devices."""
    import jax
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.make_mesh((jax.device_count(),), ("ranks",))
    share = jax.shard_map(
        lambda one: jax.lax.psum(one, "ranks"), mesh=mesh, in_specs=PartitionSpec("ranks"), out_specs=PartitionSpec()
    )
    mine = np.full(jax.local_device_count(), each)
    everywhere = jax.make_array_from_process_local_data(NamedSharding(mesh, PartitionSpec("ranks")), mine)
    return float(jax.jit(share)(everywhere)[0])


@sky.function
def world() -> World:
    """Tell rank, size, devices, which connection it is, and what a sum over all gives."""
    import jax
    from jax._src import distributed

    return (
        jax.process_index(),
        jax.process_count(),
        jax.device_count(),
        id(distributed.global_state.client),
        summed(),
    )


@sky.function
def killed_in_the_middle(victim: int) -> None:
    """Sum without end, until one rank is killed from within."""
    import jax

    turn = 0
    while True:
        summed()
        turn += 1
        if turn == 10 and jax.process_index() == victim:
            os.kill(os.getpid(), signal.SIGKILL)
