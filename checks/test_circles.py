"""
No module of core needs itself: not through types, not inside functions, not by a name given to `import_module`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from checks.tree import CORE, module_of, parsed, sources

# Each with the reason for which it stays.
BY_NAME = {
    # `Image.bootstrap()` shows the script that its own decisions would render.
    ("skyward.model.spec.image", "skyward.plan.bootstrap.bootstrap_script"),
    # An accelerator that is not known may be one that an installed plugin brings.
    ("skyward.model.accelerators.catalogue", "skyward.registry"),
    # What stands on the left of an operator is refused by what is loaded then only.
    ("skyward", "skyward.operands"),
}


def edges() -> Mapping[str, set[str]]:
    """Return the modules that each module of core imports, wherever and however in it."""
    modules = {module_of(path): path for path in sources() if CORE in path.parents}
    return {name: {found for found in _imported(path, modules) if found != name} for name, path in modules.items()}


def _imported(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            found = name if name in modules else name.rpartition(".")[0]
            # What the package itself gives is loaded on first use.
            if found in modules and found != "skyward":
                yield found


def by_name() -> set[tuple[str, str]]:
    """Return the modules of ours that are imported by names in the text, and who does."""
    found = set()
    for path in sources():
        for node in ast.walk(parsed(path)):
            if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called == "import_module" and str(node.args[0].value).startswith("skyward."):
                found.add((module_of(path), str(node.args[0].value)))
    return found


def circles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """
    Return the sets of nodes that reach each other.

    >>> sorted(map(sorted, circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set()})))
    [['a', 'b', 'c']]
    """
    reached = {start: _reached(graph, start) for start in graph}
    return {
        frozenset({start, *(other for other in ahead if start in reached[other])})
        for start, ahead in reached.items()
        if start in ahead
    }


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for other in graph[waiting.pop()] - found:
            found.add(other)
            waiting.append(other)
    return found


def test_no_module_imports_itself_by_way_of_others() -> None:
    """Circles make it impossible to read one of two modules first."""
    assert set() == circles(edges())


def test_modules_of_ours_are_imported_by_statements() -> None:
    """A name in a text is found by no reader and no tool."""
    assert by_name() == BY_NAME


def test_no_two_modules_and_no_two_classes_of_core_have_one_name() -> None:
    """A name that is searched for is found once; a command of `sky` is a module that is named as it is typed."""
    modules = [path for path in sources() if CORE in path.parents and path.parent.name != "commands"]
    files = [path.name for path in modules if not path.name.startswith("__")]
    classes = [node.name for path in modules for node in parsed(path).body if isinstance(node, ast.ClassDef)]
    assert [] == sorted({name for name in files if files.count(name) > 1})
    assert [] == sorted({name for name in classes if classes.count(name) > 1})
