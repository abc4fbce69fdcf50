"""
What the documentation of plugins shows is complete and runs.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward import hookspecs
from skyward.model.instances.cluster import LaunchCommand
from skyward.plugin import HOOKS, Plugin, decorated, launch_command

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def example(word: str) -> dict[str, Any]:
    """Run the example that has a word in it, and return its names."""
    names: dict[str, Any] = {"__name__": "example"}
    exec(next(code for code in EXAMPLES if word in code), names)
    return names


@pytest.mark.parametrize("hook", sorted(name for name in vars(hookspecs) if name.startswith("skyward_")))
def test_every_hook_is_on_the_page(hook: str) -> None:
    """A hook is named on the page, or the builder that stands for it."""
    builder = {"transform": "image_transform", "decorate": "decorator", "follow": "follower"}.get(
        hook.removeprefix("skyward_")
    )
    name = f"with_{builder or hook.removeprefix('skyward_')}" if hook.removeprefix("skyward_") in HOOKS else hook
    assert f"`{name}`" in PAGE or f"def {name}(" in PAGE
    assert hook == name or hasattr(Plugin, name)


@pytest.mark.parametrize("code", EXAMPLES, ids=lambda code: f"{len(code.splitlines())} lines")
def test_every_example_is_python(code: str) -> None:
    """Each example compiles as it stands."""
    compile(code, "plugins.md", "exec")


def test_the_decorator_of_the_page_works(capsys: pytest.CaptureFixture[str]) -> None:
    """The example around a task prints before and after it."""
    assert 3 == decorated([example("during(traced)")["trace"]], len)("abc")
    assert "begins\nended\n" == capsys.readouterr().out


def test_the_class_of_the_page_works() -> None:
    """The example of a class wraps a command."""
    plugin = example("class Niced")["Niced"](level=5)
    command = launch_command([plugin], LaunchCommand(argv=["python"]), None)  # type: ignore[arg-type]
    assert ("nice", "-n5", "python") == command.argv


@pytest.mark.slow
def test_the_provider_of_the_page_works() -> None:
    """The example of a provider runs a task, and leaves nothing behind."""
    desk = example("class Desk")["Desk"]
    # Nodes listen on Unix sockets, whose paths are short.
    with tempfile.TemporaryDirectory(prefix="sky-", dir="/tmp") as directory:
        with sky.Compute(provider=desk(directory), nodes=2, console=False) as pool:
            ranks = sky.function(os.getcwd)() @ pool
        assert [True, True] == [rank.startswith(directory) for rank in ranks]
        assert [] == os.listdir(directory)
