"""
A distribution of a third party, which knows of Skyward only what is documented, does all that ours do.
"""

from __future__ import annotations

import ast
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.third_party.installing import installed, run

SAMPLE = Path(__file__).parent / "skyward-sample"
DOCUMENTED = {"skyward", "skyward.hookspecs", "skyward.plugin", "skyward.provider"}

PROGRAM = """
import json
import sys

import skyward as sky
from skyward_sample import tally


@sky.function
def look(word):
    import os
    from skyward import instance_info

    info = instance_info()
    seen = {name: text for name, text in os.environ.items() if name.startswith("SAMPLE_")}
    return {"word": word, "provider": info.provider, "type": info.instance_type, **seen}


@sky.function
def stream():
    import os

    for _ in range(3):
        yield os.environ["SAMPLE_CALLS"]


@sky.integrations.sample()
@sky.function
def alone():
    import os

    return os.environ.get("SAMPLE_CALLS")


if __name__ == "__main__":
    cloud = sky.SampleCloud(sys.argv[1])
    with sky.Compute(provider=cloud, nodes=2, plugins=[sky.plugins.sample("hi")], console=False) as pool:
        during = list(tally.opened)
        ranks = look("x") @ pool
        one = look("y") >> pool
        streamed = list(stream() >> pool)
    with sky.Compute(provider=cloud, console=False) as pool:
        counted = alone() >> pool
    print(json.dumps([during, tally.opened, ranks, one, streamed, counted]))
"""


def imported(path: Path) -> Iterator[str]:
    """Yield every module that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", sorted(SAMPLE.rglob("*.py")), ids=lambda path: path.name)
def test_the_sample_imports_only_what_is_documented(path: Path) -> None:
    """What the sample needs of Skyward comes from the package itself and the three modules of the doors."""
    assert {name for name in imported(path) if name.split(".")[0] == "skyward"} <= DOCUMENTED


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a fresh environment that has core and the sample."""
    return installed(tmp_path_factory.mktemp("sample"), SAMPLE)


@pytest.fixture(scope="module")
def outcome(installation: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    """Run a program on the sample's cloud with the sample's plugin, and return what it saw."""
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    # Nodes listen on Unix sockets, whose paths are short.
    with tempfile.TemporaryDirectory(prefix="sky-", dir="/tmp") as machines:
        printed = run([installation, "program.py", machines], folder, SKYWARD_CACHE=str(folder / "cache"))
        yield [*json.loads(printed), os.listdir(machines)]


@pytest.mark.packaging
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("packaging")
class TestInstalled:
    """Hold what needs wheels and a fresh environment."""

    def test_provider_and_plugin_are_found(self, installation: Path, tmp_path: Path) -> None:
        """Both are public names as soon as the distribution is installed."""
        script = """
import skyward as sky
print(sky.SampleCloud.__module__, sky.plugins.sample.__module__)
print("SampleCloud" in dir(sky), "sample" in dir(sky.plugins), "sample" in dir(sky.integrations))
"""
        expected = "skyward_sample.provider skyward_sample.tally\nTrue True True\n"
        assert expected == run([installation, "-c", script], tmp_path)

    def test_its_command_is_found(self, installation: Path, tmp_path: Path) -> None:
        """`sky` lists and runs it, whichever way it is started."""
        (tmp_path / "a1").mkdir()
        sky = installation.with_name("sky")
        assert re.search(r"^  rooms +List the rooms of the sample cloud\.$", run([sky], tmp_path), re.MULTILINE)
        assert (
            "a1\n"
            == run([sky, "rooms", tmp_path], tmp_path)
            == run([installation, "-m", "skyward", "rooms", "."], tmp_path)
        )

    def test_tasks_run_on_its_machines(self, outcome: list[Any]) -> None:
        """Nodes are the provider's, and carry what the plugin's transform and process hooks set."""
        ranks = outcome[2]
        assert ["sample", "sample"] == [rank["provider"] for rank in ranks]
        assert ["sample.small", "sample.small"] == [rank["type"] for rank in ranks]
        assert ["hi", "hi"] == [rank["SAMPLE_WORD"] for rank in ranks]
        assert ["sample.small", "sample.small"] == [rank["SAMPLE_OFFER"] for rank in ranks]
        assert ["0", "1"] == [rank["SAMPLE_RANK"] for rank in ranks]

    def test_the_decorator_sees_every_call(self, outcome: list[Any]) -> None:
        """Each call is counted once where it runs, and a stream is one call."""
        _, _, ranks, one, streamed, _, _ = outcome
        assert ["1", "1"] == [rank["SAMPLE_CALLS"] for rank in ranks]
        assert "2" == one["SAMPLE_CALLS"]
        assert 3 == len(streamed)
        assert 1 == len(set(streamed))

    def test_the_decorator_works_on_one_function(self, outcome: list[Any]) -> None:
        """A pool without the plugin counts the calls of a function that has it."""
        assert "1" == outcome[5]

    def test_the_client_s_context_lasts_as_long_as_the_pool(self, outcome: list[Any]) -> None:
        """The plugin saw the pool while it was open, and no longer."""
        during, after, *_ = outcome
        assert (["pool"], []) == (during, after)

    def test_nothing_of_the_machines_is_left(self, outcome: list[Any]) -> None:
        """The provider was asked to take away all that it made."""
        assert [] == outcome[6]

    def test_the_provider_passes_the_checks(self, installation: Path, tmp_path: Path) -> None:
        """Its author runs them from the directory with a function that makes it."""
        with tempfile.TemporaryDirectory(prefix="sky-", dir="/tmp") as machines:
            made = f"import skyward_sample.provider as one\n\ndef cloud():\n    return one.SampleCloud({machines!r})\n"
            (tmp_path / "mine.py").write_text(made, encoding="utf-8")
            printed = run([installation, "-m", "skyward.testing.conformance", "mine:cloud", "-q"], tmp_path)
            assert "20 passed, 14 skipped" in printed.splitlines()[-1]
            assert [] == os.listdir(machines)
