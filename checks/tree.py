"""
What the checks read: the files of the repository and the modules of its distributions.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = ROOT / "skyward-core" / "src" / "skyward"


@cache
def files(*suffixes: str) -> tuple[Path, ...]:
    """Return the repository's own files, those that git ignores left out."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    found = (ROOT / name for name in sorted(set(listing.stdout.split("\0"))) if name)
    return tuple(path for path in found if path.is_file() and (not suffixes or path.suffix in suffixes))


def distributions() -> tuple[Path, ...]:
    """Return the folder of every distribution, the meta distribution first."""
    return (ROOT, *sorted(path.parent for path in ROOT.glob("skyward-*/pyproject.toml")))


def sources() -> tuple[Path, ...]:
    """Return the modules that the distributions ship."""
    return tuple(sorted(ROOT.glob("skyward-*/src/**/*.py")))


def module_of(path: Path) -> str:
    """Return the name that a shipped module is imported by."""
    parts = path.with_suffix("").parts
    return ".".join(parts[parts.index("src") + 1 :]).removesuffix(".__init__")


def relative(path: Path) -> str:
    """Return a path as it is written in messages and test ids."""
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def imports(path: Path) -> tuple[tuple[int, str], ...]:
    """
    Return the line and the full name of everything that a module imports, wherever in it.

    What stands under `if TYPE_CHECKING` is left out: it is there for readers and never runs.
    """
    return tuple(_imports(parsed(path)))


def _imports(module: ast.Module) -> Iterator[tuple[int, str]]:
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting.extend(node.orelse)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)
        else:
            waiting.extend(ast.iter_child_nodes(node))
