"""
Say how many nodes a pool has: a number, a range, or enough to begin with.
"""

import skyward as sky


@sky.function
def node() -> int:
    return sky.instance_info().node


described = [
    sky.Compute(provider=sky.Local(), nodes=4),
    sky.Compute(provider=sky.Local(), nodes=(2, 8)),
    sky.Compute(provider=sky.Local(), nodes=sky.Nodes(desired=8, min=4)),
    sky.Compute(provider=sky.Local(), nodes=sky.Nodes(desired=4, min=2, max=16)),
]

with sky.Compute(provider=sky.Local(), nodes=sky.Nodes(desired=2, min=1)) as pool:
    # One node is enough to begin with; the other one joins.
    at_least_one = pool.current_nodes() >= 1
    everyone = len(node() @ pool)

print(f"{len(described)} described | began with one or more: {at_least_one} | reached {everyone in (1, 2)}")
