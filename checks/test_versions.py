"""
One version for all distributions, written where each tool looks for it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import skyward
from checks.tree import ROOT, distributions


def project(folder: Path) -> dict[str, Any]:
    """Return the project table of a distribution."""
    table: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


@pytest.mark.parametrize("folder", distributions(), ids=lambda folder: folder.name)
def test_all_distributions_share_the_version(folder: Path) -> None:
    """Every project file carries the version that `skyward.__version__` tells."""
    assert skyward.__version__ == project(folder)["version"]


@pytest.mark.parametrize("folder", distributions(), ids=lambda folder: folder.name)
def test_all_distributions_support_the_same_interpreters(folder: Path) -> None:
    """Every project file asks for the oldest Python that the tests run on."""
    assert ">=3.11" == project(folder)["requires-python"]


def test_the_meta_distribution_asks_for_the_core_of_its_own_version() -> None:
    """`skyward` depends on the core that was released with it, so no mixture of versions is installed."""
    assert f"skyward-core=={skyward.__version__}" in project(ROOT)["dependencies"]


def test_every_extra_names_distributions_of_this_repository() -> None:
    """An extra asks only for distributions that have a folder here."""
    own = {project(folder)["name"] for folder in distributions()}
    extras = project(ROOT).get("optional-dependencies", {})
    asked = {re.split(r"[\[<>=~! ]", each)[0] for needs in extras.values() for each in needs}
    assert asked <= own


def test_the_changelog_has_a_section_for_the_version() -> None:
    """The changelog tells what the present version brings."""
    assert f"\n## {skyward.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
