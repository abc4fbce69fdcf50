"""
What `import skyward` loads, and what first uses load; time is measured in benchmarks/, not here.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"asyncio", "asyncssh", "boto3", "cloudpickle", "email", "httpx", "inspect", "multiprocessing", "numpy", "rich"}
NEVER = {"asyncssh", "boto3", "httpx", "numpy", "rich"}


def loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after some code, without those it starts with."""
    script = f"import sys; before = set(sys.modules); {code}; print(*set(sys.modules) - before)"
    run = subprocess.run([sys.executable, "-I", "-c", script], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


def test_the_import_loads_next_to_nothing() -> None:
    """`import skyward` loads no more of Skyward than the package and its table of names, and nothing heavy."""
    loaded = loaded_by("import skyward")
    assert {"skyward", "skyward.names"} == {name for name in loaded if name.split(".")[0] == "skyward"}
    assert set() == loaded & HEAVY


@pytest.mark.parametrize("code", ["sky.function(len)", "sky.Image()", "sky.Local()", "sky.accelerators.H100(count=8)"])
def test_a_first_use_loads_nothing_that_is_not_needed(code: str) -> None:
    """Building functions and values loads no console, no cloud's library and no event loop."""
    assert set() == loaded_by(f"import skyward as sky; {code}") & (NEVER | {"asyncio", "multiprocessing"})


def test_the_list_of_commands_loads_no_distribution() -> None:
    """They bring providers and plugins; one that brings a command as well would be loaded."""
    loaded = loaded_by("from skyward.cli.known_commands import summaries; summaries()")
    assert "skyward.cli.commands.ls" in loaded
    assert set() == {name for name in loaded if name.startswith("skyward_")} | loaded & NEVER


@pytest.mark.parametrize(
    ("program", "needless"),
    [
        ("skyward.node.agent.agent_main", {"attr", "cloudpickle", "tempfile"}),
        ("skyward.node.worker.worker", {"attr", "asyncio", "ssl", "subprocess", "tempfile"}),
    ],
)
def test_a_process_of_a_node_loads_no_more_than_it_begins_with(program: str, needless: set[str]) -> None:
    """A pool waits for its agents and workers: what only some tasks need is loaded by those."""
    assert set() == loaded_by(f"import {program}") & needless
