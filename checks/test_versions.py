"""
One version for all distributions, written where each tool looks for it, and one of its own for the meta distribution.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import skyward
from checks.tree import ROOT, distributions, files

OTHERS = (0, 12, 1)
"""The latest version of another program that has the name `skyward` on the public index."""

PARTS = [folder for folder in distributions() if folder != ROOT]


def project(folder: Path) -> dict[str, Any]:
    """Return the project table of a distribution."""
    table: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return table


@pytest.mark.parametrize("folder", PARTS, ids=lambda folder: folder.name)
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


def test_the_meta_distribution_counts_by_years() -> None:
    """So that it ranks above another program of its name; an epoch has a `!`, which shells take for their own."""
    numbers = re.fullmatch(r"(20\d\d)\.(\d+)\.(\d+)", project(ROOT)["version"])
    assert numbers is not None
    assert OTHERS < tuple(map(int, numbers.groups()))
    assert f"## {skyward.__version__}, together `skyward` {project(ROOT)['version']}" in (
        ROOT / "CHANGELOG.md"
    ).read_text("utf-8")


def test_what_is_to_be_typed_excludes_the_other_program() -> None:
    """Each command of a page that names `skyward` has a bound that the other program never meets, and ours does."""
    least = project(ROOT)["version"].split(".")[0]
    pages = [page for page in files(".md") if page.name not in ("CHANGELOG.md", "decisions.md")]
    typed = [
        line
        for page in pages
        for line in page.read_text("utf-8").splitlines()
        if re.search(r"install\b.*\bskyward\[", line)
    ]
    assert typed
    assert [] == [line for line in typed if not re.search(rf'"skyward\[[a-z,]+\]>={least}"', line)]


def test_every_extra_names_distributions_of_this_repository() -> None:
    """An extra asks only for distributions that have a folder here."""
    own = {project(folder)["name"] for folder in distributions()}
    extras = project(ROOT).get("optional-dependencies", {})
    asked = {re.split(r"[\[<>=~! ]", each)[0] for needs in extras.values() for each in needs}
    assert asked <= own


def test_the_changelog_has_a_section_for_the_version() -> None:
    """The changelog tells what the present version brings."""
    assert f"\n## {skyward.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
