"""
Imports of core point one way: from a room to the rooms above it in the table of docs/architecture.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path

from checks.tree import CORE, ROOT, imports, relative, sources

MODULES = [path for path in sources() if CORE in path.parents]

CLOUDS = [
    path
    for path in sources()
    if path.relative_to(ROOT).parts[0].removeprefix("skyward-")
    in ("aws", "container", "digitalocean", "runpod", "vastai", "verda")
]
"""The modules of the distributions that rent from clouds."""

# An event is a moment, so the value takes the time it is made at.
EXEMPT = {"skyward-core/src/skyward/model/events/event_base.py": {"time"}}
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


def test_a_room_imports_only_from_those_above_it() -> None:
    """No module of core imports from a room that stands further down in the table."""
    assert [] == _importing(
        MODULES,
        lambda path, name: name.split(".")[0] == "skyward" and LEVELS[_room_named(name)] > LEVELS[room_of(path)],
    )


def test_the_house_points_to_files_that_are_there() -> None:
    """Each path in `docs/architecture.md` leads to a file of core, of the checks or of the documents."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_/]+/[a-z_]+\.[a-z]+)`", text))
    assert [] == sorted(name for name in named if not (CORE / name).exists() and not (ROOT / name).exists())


def test_values_and_decisions_touch_nothing() -> None:
    """`model/` and `plan/` compute: they have no clock, no randomness, no log and no threads."""
    assert [] == _importing(
        [path for path in MODULES if room_of(path) in {"model", "plan"}],
        lambda path, name: name.split(".")[0] in WORLD - EXEMPT.get(relative(path), set()),
    )


def test_only_the_console_imports_rich() -> None:
    """No room but `console/` imports rich."""
    modules = [path for path in MODULES if room_of(path) != "console"]
    assert [] == _importing(modules, lambda _, name: name.split(".")[0] == "rich")


def test_only_one_room_imports_httpx() -> None:
    """No module but those of `rest/` imports httpx: every cloud's calls are made in one way."""
    modules = [path for path in sources() if path.parent.name != "rest"]
    assert [] == _importing(modules, lambda _, name: name.split(".")[0] == "httpx")


def test_core_names_no_other_distribution() -> None:
    """Core never imports a provider's or a framework's distribution."""
    assert [] == _importing(MODULES, lambda _, name: name.startswith("skyward_"))


def test_a_provider_imports_from_one_place() -> None:
    """The distributions of clouds need no name of core but those of `skyward.provider`."""
    assert CLOUDS
    assert [] == _importing(
        CLOUDS, lambda _, name: name.split(".")[0] == "skyward" and not name.startswith("skyward.provider.")
    )


def test_what_a_provider_logs_is_in_the_pools_log() -> None:
    """The loggers of the distributions of clouds are below `skyward`."""
    made = {relative(path): re.findall(r"getLogger\((.*?)\)", path.read_text(encoding="utf-8")) for path in CLOUDS}
    assert {} == {
        path: names for path, names in made.items() if not all(name.startswith('"skyward.provider.') for name in names)
    }


def _importing(modules: Iterable[Path], wrong: Callable[[Path, str], bool]) -> list[str]:
    """List the imports of modules that are wrong."""
    return [
        f"{relative(path)}:{line} imports {name}"
        for path in modules
        for line, name in imports(path)
        if wrong(path, name)
    ]


def _room_named(name: str) -> str:
    """Return the room of an imported name; what the package itself gives is in its `__init__`."""
    rest = name.split(".")[1:]
    return rest[0] if rest and rest[0] in LEVELS else "__init__"
