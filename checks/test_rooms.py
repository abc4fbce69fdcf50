"""
Imports of core point one way: from a room to the rooms above it in the table of docs/architecture.md.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from checks.tree import CORE, ROOT, imports, relative, sources

MODULES = [path for path in sources() if CORE in path.parents]

# An event is a moment, so the value takes the time it is made at.
EXEMPT = {"skyward-core/src/skyward/model/event_base.py": {"time"}}
WORLD = {"asyncio", "logging", "multiprocessing", "random", "secrets", "socket", "subprocess", "threading", "time"}
"""What waits, keeps a clock, rolls dice or touches the world."""


def levels() -> dict[str, int]:
    """Return the level of each room, lowest first, as the table of the house gives it."""
    table = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    rooms = [re.findall(r"`([a-z_]+)(?:/|\.py)`", row) for row in rows]
    return {room: level for level, row in enumerate(filter(None, rooms)) for room in row}


LEVELS = levels()


def room_of(path: Path) -> str:
    """Return the room that a module of core is in."""
    return path.relative_to(CORE).parts[0].removesuffix(".py")


def test_the_house_lists_every_room() -> None:
    """Each folder and module at the top of core has a row in the table, and each row a folder or module."""
    assert {room_of(path) for path in MODULES} == set(LEVELS)


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_room_imports_only_from_those_above_it(path: Path) -> None:
    """No module of core imports from a room that stands further down in the table."""
    own = LEVELS[room_of(path)]
    wrong = [
        f"{relative(path)}:{line} imports {name}"
        for line, name in imports(path)
        if name.split(".")[0] == "skyward" and LEVELS[_room_named(name)] > own
    ]
    assert [] == wrong


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) in {"model", "plan"}], ids=relative)
def test_values_and_decisions_touch_nothing(path: Path) -> None:
    """`model/` and `plan/` compute: they have no clock, no randomness, no log and no threads."""
    forbidden = WORLD - EXEMPT.get(relative(path), set())
    wrong = [
        f"{relative(path)}:{line} imports {name}" for line, name in imports(path) if name.split(".")[0] in forbidden
    ]
    assert [] == wrong


@pytest.mark.parametrize("path", [path for path in MODULES if room_of(path) != "console"], ids=relative)
def test_only_the_console_imports_rich(path: Path) -> None:
    """No room but `console/` imports rich."""
    assert [] == [line for line, name in imports(path) if name.split(".")[0] == "rich"]


@pytest.mark.parametrize("path", [path for path in sources() if path.parent.name != "rest"], ids=relative)
def test_only_one_room_imports_httpx(path: Path) -> None:
    """No module but those of `rest/` imports httpx: every cloud's calls are made in one way."""
    assert [] == [line for line, name in imports(path) if name.split(".")[0] == "httpx"]


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_core_names_no_other_distribution(path: Path) -> None:
    """Core never imports a provider's or a framework's distribution."""
    assert [] == [line for line, name in imports(path) if name.startswith("skyward_")]


def _room_named(name: str) -> str:
    """Return the room of an imported name; what the package itself gives is in its `__init__`."""
    rest = name.split(".")[1:]
    return rest[0] if rest and rest[0] in LEVELS else "__init__"
