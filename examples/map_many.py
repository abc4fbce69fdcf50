"""
Map a function over more items than one would want in memory, several at a time on each node.
"""

from collections.abc import Iterator

import skyward as sky


def collatz(start: int) -> int:
    steps = 0
    while start != 1:
        start = start // 2 if start % 2 == 0 else 3 * start + 1
        steps += 1
    return steps


def starts() -> Iterator[int]:
    yield from range(1, 5_001)


with sky.Compute(nodes=2, concurrency=2) as pool:
    # A plain function does, and a list comes back in the order of the items.
    print("steps from 1 to 9:", pool.map(collatz, range(1, 10)))

    # With a stream neither the items nor the results are ever all there at once.
    longest = max(enumerate(pool.map(collatz, starts(), stream=True), start=1), key=lambda pair: pair[1])
    print(f"longest under 5000: {longest[0]} takes {longest[1]} steps")
