"""
Use the pool's own methods where an operator cannot say enough.
"""

import skyward as sky


@sky.function
def work(x: int) -> int:
    return 2 * x


@sky.function
def where() -> int:
    return sky.instance_info().node


def plain(x: int) -> int:
    return x * x


with sky.Compute(provider=sky.Local(), nodes=2) as pool:
    assert pool.is_active
    assert pool.instance_count == pool.current_nodes() == 2
    assert pool.run(work(4)) == 8
    assert pool.run(where(), target="head") == 0
    assert pool.run(where(), target=1) == 1
    assert pool.run_async(work(5)).result() == 10
    assert pool.run_async(where(), target=1).result() == 1
    assert pool.broadcast(where()) == [0, 1]
    batch: sky.PendingBatch = work(1) & work(2)
    assert pool.run_batch(batch) == (2, 4)
    assert pool.run_parallel(sky.gather(work(1), work(2), work(3))) == (2, 4, 6)
    mapped = pool.map(plain, [1, 2, 3])
    streamed = list(sky.gather(work(1), work(2), stream=True) >> pool)
    as_they_end = set(sky.gather(work(1), work(2), stream=True, ordered=False) >> pool)

    pool.resize(1)
    pool.resize(sky.Nodes(desired=1))

assert not pool.is_active
print(f"mapped {mapped} | streamed {streamed} | in any order {as_they_end}")
