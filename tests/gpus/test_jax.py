"""JAX on a real GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import skyward as sky
from tests.frameworks.jax_work import killed_in_the_middle, summed, world

pytestmark = [pytest.mark.gpus, pytest.mark.timeout(240)]


@sky.function
def filled(share: float) -> tuple[str, float]:
    """Take a share of the GPU's memory, and tell where it was and the mean of its first numbers."""
    import jax
    import jax.numpy as jnp

    device = jax.local_devices()[0]
    held = jnp.ones(int(device.memory_stats()["bytes_limit"] * share) // 4, dtype=jnp.float32)
    held.block_until_ready()
    return device.platform, float(held[:1024].mean())


@sky.function
def alone() -> float:
    return summed()


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Pool]:
    """Run one rank."""
    with sky.Compute(plugins=[sky.plugins.jax()], console="silent", logging=False) as pool:
        yield pool


def test_a_world_has_the_gpu(pool: sky.Pool) -> None:
    """In broadcasts and in calls in between."""
    for _ in range(2):
        [(rank, size, devices, _, total)] = world() @ pool
        assert (rank, size, devices, total) == (0, 1, 1, 1.0)
        assert alone() >> pool == 1.0


def test_the_memory_is_free_for_the_next_world(pool: sky.Pool) -> None:
    """JAX takes most of it in each; a world that a call came between, and one whose rank was killed, give it back."""
    for _ in range(3):
        assert [("gpu", 1.0)] == filled(0.6) @ pool
        assert filled(0.6) >> pool == ("gpu", 1.0)
    with pytest.raises(sky.WorkerDiedError, match="SIGKILL"):
        killed_in_the_middle(0) @ pool
    assert [("gpu", 1.0)] == filled(0.6) @ pool


def test_a_host_s_rank_has_its_gpu(host: sky.SSH, model: str) -> None:
    """Without the plugin, by the decorator."""
    name = next(word for word in model.split() if any(letter.isdigit() for letter in word))
    pool = sky.Compute(provider=host, accelerator=name, per_node="accelerator", console="silent", logging=False)
    with pool:
        [(rank, size, devices, _, total)] = sky.integrations.jax()(world)() @ pool
        assert (rank, size, devices, total) == (0, 1, 1, 1.0)
