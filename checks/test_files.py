"""
What holds for every file: one subject each, nothing of one machine, links that lead somewhere.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from checks.tree import ROOT, distributions, files, relative, sources
from tests.conftest import SMALL

LONGEST = 450
"""Lines after which a module has to be two; beyond 300 its author asks whether it holds two subjects."""

WHOLE = {"hookspecs.py", "errors.py"}
"""Modules that are as long as they have to be: a plugin is written from the one alone, and the other is one tree."""

OF_ONE_MACHINE = re.compile(
    r"(?<![\w.$}~-])/(?:work|home|root|Users)/\w"
    r"|pypi[.]org|pythonhosted[.]org|npmjs[.]org|deb[.]debian[.]org"
)

TEXT = tuple(
    path
    for path in files()
    if path.suffix in {"", ".cfg", ".ini", ".json", ".md", ".py", ".sh", ".toml", ".txt", ".yml"}
)
PROSE = files(".md")


def test_a_module_holds_one_subject() -> None:
    """No shipped module is longer than one subject needs."""
    lengths = {
        relative(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in sources()
        if path.name not in WHOLE
    }
    assert {} == {name: length for name, length in lengths.items() if length > LONGEST}


def test_a_suite_is_named_where_its_tests_are() -> None:
    """The mark of a small suite stands in its tests' module, or in its folder: others are not collected."""
    shared = [path for path in files(".py") if "tests" in path.parts and not path.match("test_*.py")]
    assert [] == [
        f"{relative(path)}: {suite}"
        for path in shared
        for suite in SMALL
        if suite not in path.parts and f"pytest.mark.{suite}" in path.read_text(encoding="utf-8")
    ]


def test_nothing_names_one_machine() -> None:
    """No file holds a path of somebody's machine or the host of a package registry."""
    assert [] == [
        f"{relative(path)}:{number}"
        for path in TEXT
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OF_ONE_MACHINE.search(line)
    ]


def test_links_lead_to_files_and_headings() -> None:
    """A relative link in prose names a file of the repository, and its anchor a heading there."""
    assert [] == [
        f"{relative(path)}: {target}"
        for path in PROSE
        for target in _targets(path)
        if "://" not in target and not _leads(path, target)
    ]


@pytest.mark.parametrize("folder", distributions(), ids=lambda folder: folder.name)
def test_a_distribution_carries_licence_and_readme(folder: Path) -> None:
    """Every distribution has a README and the repository's licence beside its project file."""
    assert (folder / "README.md").is_file()
    assert (ROOT / "LICENSE").read_bytes() == (folder / "LICENSE").read_bytes()


@pytest.mark.parametrize("folder", distributions()[1:], ids=lambda folder: folder.name)
def test_a_distribution_is_typed(folder: Path) -> None:
    """Every import package carries the mark that its annotations may be relied on."""
    assert 1 == len(list(folder.glob("src/*/py.typed")))


def _targets(path: Path) -> list[str]:
    """List what the links of a page lead to, those in its code aside."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def _leads(path: Path, target: str) -> bool:
    """Say whether a link leads to a file of the repository, and its anchor to a heading."""
    name, _, anchor = unquote(target).partition("#")
    file = (path.parent / name).resolve() if name else path
    return file.exists() and (not anchor or anchor in _anchors(file))


def _anchors(path: Path) -> set[str]:
    """Return the anchors that the headings of a file give."""
    headings = re.findall(r"^#+ +(.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
