"""The guide to plugins shows each builder at work, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skyward import Plugin

PAGE = (Path(__file__).parents[2] / "docs" / "write-a-plugin.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
BUILDERS = sorted(name for name in vars(Plugin) if name.startswith("with_"))


@pytest.mark.parametrize("builder", BUILDERS)
def test_every_builder_has_an_example(builder: str) -> None:
    """One that runs, and is described in the text."""
    assert any(f".{builder}(" in code for code in EXAMPLES)
    assert f"`{builder}`" in PAGE


@pytest.mark.slow
@pytest.mark.parametrize("builder", BUILDERS)
def test_the_example_of_a_builder_runs(
    builder: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asserts itself what the builder does."""
    monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path_factory.mktemp("cache")))
    # What is of the program that runs travels with its functions.
    exec(next(code for code in EXAMPLES if f".{builder}(" in code), {"__name__": "__main__"})
