"""Open descriptors of this process, by what they lead to: threads of other tests open and close others meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_OPEN = Path("/proc/self/fd")


def memory_descriptors() -> int:
    """Count the descriptors that lead to memory; none where the system does not list them."""
    return sum(target.startswith(("/memfd:", "/dev/shm/")) for target in _targets())


def descriptors_under(directory: Path) -> int:
    """Count the descriptors that lead to files in a directory, removed ones included."""
    return sum(target.startswith(f"{directory}/") for target in _targets())


def _targets() -> Iterator[str]:
    for entry in os.listdir(_OPEN) if _OPEN.exists() else ():
        try:
            yield os.readlink(_OPEN / entry)
        except OSError:
            # Closed since it was listed, as the one that lists them is.
            continue
