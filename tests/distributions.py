"""Which distributions of this repository are installed where the tests run."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

EXTRAS: dict[str, list[str]] = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))[
    "project"
]["optional-dependencies"]


def is_installed(extra: str) -> bool:
    """Tell whether the distribution that an extra names is there; one that is not written yet has the extra's name."""
    (requirement,) = EXTRAS.get(extra, [f"skyward-{extra}"])
    try:
        distribution(re.split(r"[\[=]", requirement)[0])
    except PackageNotFoundError:
        return False
    return True
