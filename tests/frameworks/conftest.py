"""What all tests of frameworks share."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.seeds import some

LEAST = 0.33
"""The share of the frameworks, at least, with which a run tries a rule that they have in common."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep of the tests that several frameworks have under one name those of some, drawn anew."""
    rules: dict[str, dict[Path, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        if item.path.parent == Path(__file__).parent:
            rules[item.nodeid.partition("::")[2].partition("[")[0]][item.path].append(item)
    left: set[pytest.Item] = set()
    for name, modules in rules.items():
        kept = some(f"frameworks of {name}", sorted(modules), least=LEAST)
        left.update(item for module, tests in modules.items() if module not in kept for item in tests)
    if left:
        items[:] = [item for item in items if item not in left]
        config.hook.pytest_deselected(items=sorted(left, key=lambda item: item.nodeid))


@pytest.fixture(scope="package", autouse=True)
def files_of_killed_ranks() -> Iterator[None]:
    """Take away the code that TensorFlow writes for itself: a rank that is killed leaves it where it was."""
    with (
        tempfile.TemporaryDirectory(prefix="frameworks-", ignore_cleanup_errors=True) as directory,
        pytest.MonkeyPatch.context() as patched,
    ):
        patched.setenv("TMPDIR", directory)
        yield
