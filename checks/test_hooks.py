"""
Hooks are a contract: each is documented in full and has a test of its own.
"""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from checks.tree import CORE, ROOT, parsed

SECTIONS = ("When:", "Runs on:", "Since:")


def _mark(decorator: ast.expr) -> str:
    """Return the name of a decorator, called or not."""
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator)


def hooks() -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return the functions in `skyward.hookspecs`, and the file it takes some from, that are hooks, by name."""
    return {
        node.name: node
        for file in ("hookspecs_distribution.py", "hookspecs.py")
        for node in ast.walk(parsed(CORE / file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "hookspec" in map(_mark, node.decorator_list)
    }


@cache
def covered() -> frozenset[str]:
    """Return the names of all tests of hooks."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    return frozenset(re.findall(r"def (test_hook_\w+)", text))


@pytest.mark.parametrize("name", hooks())
def test_a_hook_says_when_and_where_it_runs(name: str) -> None:
    """The docstring of a hook tells when it is called, on which side, and since which version."""
    text = ast.get_docstring(hooks()[name]) or ""
    assert [] == [section for section in SECTIONS if section not in text]


@pytest.mark.parametrize("name", hooks())
def test_a_hook_documents_every_argument(name: str) -> None:
    """Each argument of a hook is explained in its docstring."""
    hook = hooks()[name]
    text = ast.get_docstring(hook) or ""
    arguments = [argument.arg for argument in hook.args.args + hook.args.kwonlyargs]
    assert [] == [argument for argument in arguments if f"{argument}:" not in text]


@pytest.mark.parametrize("name", hooks())
def test_a_hook_is_annotated(name: str) -> None:
    """Each hook tells the type of what it returns."""
    assert hooks()[name].returns is not None


@pytest.mark.parametrize("name", hooks())
def test_a_hook_has_a_test_of_its_own(name: str) -> None:
    """Some test is called `test_hook_` and the hook's name without the prefix that all hooks share."""
    assert f"test_hook_{name.removeprefix('skyward_')}" in covered()
