"""
Stream results out of a running function, and arguments into one, without holding all of them anywhere.
"""

from collections.abc import Iterator
from itertools import count

import skyward as sky


@sky.function
def primes() -> Iterator[int]:
    # It never ends by itself: the caller stops it by leaving the loop.
    for candidate in count(2):
        if all(candidate % divisor for divisor in range(2, int(candidate**0.5) + 1)):
            yield candidate


@sky.function
def mean(numbers: Iterator[float]) -> float:
    # `Iterator` in the annotation is what makes the argument a stream.
    total, seen = 0.0, 0
    for number in numbers:
        total, seen = total + number, seen + 1
    return total / seen


def readings() -> Iterator[float]:
    for i in range(20_000):
        yield i / 2


with sky.Compute() as pool:
    found = []
    for prime in primes() >> pool:
        found.append(prime)
        if len(found) == 10:
            break
    print("first primes:", found)
    print("mean of a stream of 20000:", mean(readings()) >> pool)
