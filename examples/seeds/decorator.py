"""
Open a pool for the time of a call, and let `sky` stand for it.
"""

from typing import Any

import skyward as sky

numbers = [4, 8, 15]


@sky.compute
def double(x: int) -> int:
    return 2 * x


@sky.compute
def half(x: int) -> float:
    return x / 2


@sky.compute
def name(x: int) -> str:
    return f"run-{x}"


@sky.compute
def warm_up() -> int:
    return sky.instance_info().node


@sky.pool(provider=sky.Local(), nodes=2)
def main() -> Any:
    one = double(21) >> sky
    everywhere = warm_up() @ sky

    # Types are kept: an int, a float and a string.
    a: int
    b: float
    c: str
    a, b, c = (double(1) & half(1) & name(1)) >> sky
    r1, r2, r3, r4, r5 = (double(1) & half(2) & name(3) & double(4) & half(5)) >> sky

    g1, g2, g3 = sky.gather(double(1), double(2), double(3)) >> sky
    mapped = sky.gather(*[double(x) for x in numbers]) >> sky
    return one, everywhere, (a, b, c), (r1, r2, r3, r4, r5), (g1, g2, g3), mapped


for part in main():
    print(part)
