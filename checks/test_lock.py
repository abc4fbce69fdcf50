"""What constraints.txt has to hold, so that an environment is the same wherever and whenever it is made."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from checks.tree import ROOT

OURS = re.compile(r"skyward(-[a-z]+)?")


def requirements() -> Iterator[Requirement]:
    """Yield what the project files ask for, groups for developers included."""
    for path in (ROOT / "pyproject.toml", *ROOT.glob("skyward-*/pyproject.toml")):
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
        lists = [facts["project"].get("dependencies", ()), *facts.get("dependency-groups", {}).values()]
        for text in (text for given in lists for text in given if isinstance(text, str)):
            if not OURS.fullmatch((asked := Requirement(text)).name):
                yield asked


def locked() -> dict[str, list[str]]:
    """Return the releases that are locked, more than one where interpreters differ."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            pin = Requirement(line)
            [specifier] = pin.specifier
            assert specifier.operator == "==", line
            found.setdefault(canonicalize_name(pin.name), []).append(specifier.version)
    return found


def test_every_requirement_is_locked_to_a_release_that_meets_it() -> None:
    """One that is not would be whatever is newest on the day; `make lock` writes the file."""
    pins = locked()
    assert [] == [
        str(asked)
        for asked in requirements()
        if not (releases := pins.get(canonicalize_name(asked.name)))
        or not all(asked.specifier.contains(each, prereleases=True) for each in releases)
    ]
