"""
Run a function on two nodes that exist only as long as the pool is open.
"""

import skyward as sky


@sky.function
def square(x: int) -> int:
    return x * x


with sky.Compute(nodes=2) as pool:
    print(square(7) >> pool)
    print(pool.map(square, range(4)))
