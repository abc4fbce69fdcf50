"""
Examples in docstrings are true, and every public module, class and function says what it is for.
"""

from __future__ import annotations

import ast
import doctest
from importlib import import_module
from pathlib import Path

import pytest

from checks.tree import module_of, parsed, relative, sources

WITH_EXAMPLES = [path for path in sources() if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=relative)
def test_examples_are_true(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the examples of a module print is what they show; the pools that they open leave no log with the user."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    result = doctest.testmod(
        import_module(module_of(path)), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert 0 == result.failed


def test_what_is_public_is_documented() -> None:
    """Every module with code in it, and every public class and function of it, has a docstring."""
    assert {} == {relative(path): missing for path in sources() if (missing := _undocumented(path))}


def _undocumented(path: Path) -> list[str]:
    """List what is public in a module and has no docstring, the module itself among them."""
    module = parsed(path)
    public = [
        node
        for node in module.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
    ]
    # The docstring of an overloaded function stands at its implementation.
    documented = {node.name for node in public if ast.get_docstring(node)}
    missing = sorted({node.name for node in public} - documented)
    return missing if not module.body or ast.get_docstring(module) else ["the module", *missing]
