"""
JAX's collectives over several processes: each gives what its definition says, on two nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import skyward as sky

pytestmark = [pytest.mark.suites, pytest.mark.timeout(600)]


@sky.function
def collectives() -> dict[str, list[float]]:
    """Have each rank give its number and ten more, and tell what it has of each collective."""
    import jax
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec as P

    ranks, rank = jax.process_count(), jax.process_index()
    mesh = jax.make_mesh((ranks,), ("ranks",))
    mine = np.array([rank, 10.0 + rank], dtype=np.float32)
    everywhere = jax.make_array_from_process_local_data(NamedSharding(mesh, P("ranks")), mine)
    shift = [(one, (one + 1) % ranks) for one in range(ranks)]

    def own(what: Any) -> list[float]:
        found = jax.jit(jax.shard_map(what, mesh=mesh, in_specs=P("ranks"), out_specs=P("ranks")))(everywhere)
        return [float(each) for each in np.asarray(found.addressable_shards[0].data)]

    return {
        "psum": own(lambda one: jax.lax.psum(one, "ranks")),
        "pmax": own(lambda one: jax.lax.pmax(one, "ranks")),
        "pmean": own(lambda one: jax.lax.pmean(one, "ranks")),
        "ppermute": own(lambda one: jax.lax.ppermute(one, "ranks", shift)),
        "all_gather": own(lambda one: jax.lax.all_gather(one, "ranks", tiled=True)),
        "psum_scatter": own(lambda one: jax.lax.psum_scatter(one, "ranks", tiled=True)),
        "all_to_all": own(lambda one: jax.lax.all_to_all(one, "ranks", 0, 0, tiled=True)),
    }


@sky.function
def helpers() -> tuple[list[float], float, bool]:
    """Use what JAX has for programs of several processes."""
    import jax
    import numpy as np
    from jax.experimental import multihost_utils

    gathered = multihost_utils.process_allgather(np.float32(jax.process_index() + 1))
    told = multihost_utils.broadcast_one_to_all(np.float32(7 + jax.process_index()))
    multihost_utils.sync_global_devices("here")
    multihost_utils.assert_equal(np.arange(3), "all ranks have the same")
    return [float(each) for each in gathered], float(told), jax.process_count() == 2


@pytest.fixture(scope="module")
def pool() -> Iterator[sky.Compute]:
    """Two nodes."""
    with sky.Compute(nodes=2, plugins=[sky.plugins.jax()], console="silent") as pool:
        yield pool


def test_collectives_give_what_they_say(pool: sky.Compute) -> None:
    """On each rank, with two numbers each: 0 and 10 on the first, 1 and 11 on the second."""
    first, second = collectives() @ pool
    assert {
        "psum": [1.0, 21.0],
        "pmax": [1.0, 11.0],
        "pmean": [0.5, 10.5],
        "ppermute": [1.0, 11.0],
        "all_gather": [0.0, 10.0, 1.0, 11.0],
        "psum_scatter": [1.0],
        "all_to_all": [0.0, 1.0],
    } == first
    assert ([0.0, 10.0], [21.0], [10.0, 11.0]) == (second["ppermute"], second["psum_scatter"], second["all_to_all"])


def test_helpers_for_several_processes_run(pool: sky.Compute) -> None:
    """Twice, with a call of one rank between."""
    for _ in range(2):
        assert [([1.0, 2.0], 7.0, True)] * 2 == helpers() @ pool
        assert 0 == sky.function(lambda: __import__("jax").process_index())() >> pool
