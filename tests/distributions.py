"""Which distributions of this repository are installed where the tests run."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution


def is_installed(extra: str) -> bool:
    """Tell whether the distribution that an extra names is there."""
    try:
        distribution(f"skyward-{extra}")
    except PackageNotFoundError:
        return False
    return True
