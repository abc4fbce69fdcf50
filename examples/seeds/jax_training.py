"""
Compute with JAX on the devices of all nodes, by a decorator of the function and by a plugin of the pool.

Needs jax and `skyward-jax`.
"""

import skyward as sky


@sky.integrations.jax()
@sky.compute
def train() -> tuple[int, int]:
    import jax

    # The world is there already.
    return jax.process_count(), jax.device_count()


@sky.function
def how_many() -> int:
    import jax

    return int(jax.process_count())


if __name__ == "__main__":
    with sky.ComputePool(provider=sky.Local(), nodes=2) as pool:
        worlds = train() @ pool
    with sky.Compute(provider=sky.Local(), nodes=2, plugins=[sky.plugins.jax(cuda="cu124")]) as pool:
        counts = how_many() @ pool
    print(f"processes: {[processes for processes, _ in worlds]} | by the plugin: {counts}")
