"""
The random orders of torch, also where there is no torch: what `torch.randperm` gives for a seed.

Torch's generator on the CPU is the Mersenne Twister MT19937, seeded by the low 32 bits of its seed with the
recurrence of its authors; Python has the same generator and seeds it in another way.
The permutation is a Fisher-Yates shuffle from the front, which takes one 32-bit number for each place.
"""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Sequence

from skyward.errors import ConfigError

__all__ = ["permutation"]

SEEDS = range(-(1 << 63), 1 << 64)
"""What torch takes for a seed."""

LONGEST = (2**32 - 1) // 20
"""The lengths below this are shuffled so; torch has another way for longer ones, which takes too long in Python."""

_STATE_WORDS = 624
_MULTIPLIER = 1812433253
_PIECE = 1 << 16


def permutation(length: int, seed: int) -> Sequence[int]:
    """
    Shuffle the numbers below a length as `torch.randperm` does with a generator of that seed.

    Torch does it where it is loaded, and for lengths from `LONGEST`.

    Args:
        length: How many numbers.
        seed: What the order follows from.

    Raises:
        ConfigError: If torch takes no such seed, or is needed and not there.

    >>> list(permutation(10, 0))
    [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]
    """
    if seed not in SEEDS:
        raise ConfigError(f"seed and epoch add up to {seed}, and torch takes seeds from -2**63 to 2**64 - 1.")
    if length >= LONGEST or hasattr(sys.modules.get("torch"), "randperm"):
        return _of_torch(length, seed)
    return _of_python(length, seed)


def _of_torch(length: int, seed: int) -> list[int]:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"{length} samples are shuffled by torch, and it is not installed. Add it to Image(pip=[...])."
        ) from error
    generator = torch.Generator()
    generator.manual_seed(seed)
    # On the CPU, whichever device the program has made its default.
    order: list[int] = torch.randperm(length, generator=generator, device="cpu").tolist()
    return order


def _of_python(length: int, seed: int) -> list[int]:
    order = list(range(length))
    generator = _seeded(seed & 0xFFFFFFFF)
    for start in range(0, length - 1, _PIECE):
        stop = min(start + _PIECE, length - 1)
        for place, drawn in zip(range(start, stop), _drawn(generator, stop - start), strict=True):
            other = place + drawn % (length - place)
            order[place], order[other] = order[other], order[place]
    return order


def _seeded(seed: int) -> random.Random:
    """Return a generator seeded with one number as its authors do; `Random(seed)` seeds it with a list of one."""
    words = [seed]
    for place in range(1, _STATE_WORDS):
        last = words[-1]
        words.append((_MULTIPLIER * (last ^ (last >> 30)) + place) & 0xFFFFFFFF)
    generator = random.Random()
    generator.setstate((3, (*words, _STATE_WORDS), None))
    return generator


def _drawn(generator: random.Random, count: int) -> array[int]:
    """Draw 32-bit numbers, the first one first on every machine."""
    numbers = array("I", generator.getrandbits(32 * count).to_bytes(4 * count, "little"))
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
