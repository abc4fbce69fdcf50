"""
See every operator once.
"""

import skyward as sky
from skyward.testing import Rehearsal


@sky.function
def work(x: int) -> int:
    return x * 3


with sky.Compute(provider=Rehearsal(), accelerator=sky.accelerators.T4(), nodes=2) as pool:
    a = work(10) >> pool
    everyone = work(10) @ pool
    x, y = (work(1) & work(2)) >> pool
    fut = work(10) > pool
    val = fut.result()
    results = pool.map(work, [1, 2, 3, 4])
    n = pool.current_nodes()
    # Inside the block, `sky` means this pool.
    same = work(10) >> sky

print(a, everyone, (x, y), val, results, n, same)
