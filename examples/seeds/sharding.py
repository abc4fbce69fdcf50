"""
Share data out: each node works on a part of its own, and no sample is left out.
"""

import skyward as sky


@sky.compute
def add_up(full_dataset: list[int]) -> int:
    local_data = sky.shard(full_dataset)
    return sum(local_data)


@sky.compute
def agree(x_full: list[int], y_full: list[str]) -> int:
    x_local, y_local = sky.shard(x_full, y_full, shuffle=True, seed=42)
    assert all(str(x) == y for x, y in zip(x_local, y_local, strict=True))
    return len(x_local)


@sky.compute
def even_parts(full: tuple[int, ...]) -> tuple[int, ...]:
    return sky.shard(full, drop_last=True)


@sky.compute
def epochs(samples: int) -> list[list[int]]:
    sampler = sky.DistributedSampler(range(samples), shuffle=True)
    seen = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        seen.append(list(sampler))
    return seen


with sky.ComputePool(provider=sky.Local(), nodes=4) as pool:
    total = sum(add_up(list(range(1000))) @ pool)
    labelled = agree(list(range(40)), [str(x) for x in range(40)]) @ pool
    even = even_parts(tuple(range(11))) @ pool
    first, second = zip(*(epochs(8) @ pool), strict=True)

assert sorted(sample for part in first for sample in part) == list(range(8))
assert first != second
# Whose part it is can be said, on this machine too.
third = sky.shard(list("abcdefgh"), node=2, total_nodes=4)

print(f"total {total} | labelled {labelled} | even parts {[len(part) for part in even]} | third part {third}")
