"""
Errors cross processes: every class of the tree survives pickling with its facts.
"""

from __future__ import annotations

import ast
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from checks.tree import parsed, relative, sources
from skyward import errors
from skyward.errors import SkywardError


def tree(root: type[SkywardError]) -> Iterator[type[SkywardError]]:
    """Yield a class of errors and all below it."""
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


CLASSES = [error for error in tree(SkywardError) if error.__module__ == "skyward.errors"]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__qualname__)
def test_every_error_pickles_with_its_facts(error: type[SkywardError]) -> None:
    """Class, message and facts of an error come out of a pickle as they went in."""
    own = [cls for cls in error.__mro__ if issubclass(cls, SkywardError)]
    names = {name for cls in own for name in inspect.signature(cls).parameters}
    facts: dict[str, Any] = {name: f"some {name}" for name in names - {"message", "facts", "args", "kwargs"}}
    sent = error("It broke.", **facts)
    received = pickle.loads(pickle.dumps(sent, protocol=5))
    assert error is type(received)
    assert facts == {name: getattr(received, name) for name in facts}
    assert sent.__dict__ == received.__dict__
    assert str(sent) == str(received)


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__qualname__)
def test_every_error_takes_one_positional_argument(error: type[SkywardError]) -> None:
    """An error is rebuilt from its message alone, so nothing else may be required."""
    assert error("It broke.").args == ("It broke.",)


def test_every_error_is_drawn() -> None:
    """The docstring of `skyward.errors` draws the whole tree."""
    drawing = errors.__doc__ or ""
    assert [] == [error.__name__ for error in CLASSES if error.__name__ not in drawing]


def test_the_tree_is_in_one_place() -> None:
    """No other module of core adds a class to the tree, so that its drawing and these checks miss none."""
    known = {error.__name__ for error in CLASSES}
    assert [] == [
        f"{relative(path)}: {node.name}"
        for path in sources()
        if path.name != "errors.py"
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ClassDef) and known & {ast.unparse(base).split(".")[-1] for base in node.bases}
    ]
