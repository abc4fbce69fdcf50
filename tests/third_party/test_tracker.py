"""
The tracker of docs/write-a-plugin.md, from its source and installed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.third_party.installing import ROOT, installed, run

TRACKER = ROOT / "examples" / "skyward-tracker"

README = (TRACKER / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def tracker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The package as it is in examples/, imported as a module of the user's own."""
    monkeypatch.syspath_prepend(TRACKER / "src")
    import tracker
    import tracker.plugin

    yield tracker
    for name in [name for name in sys.modules if name.partition(".")[0] == "tracker"]:
        del sys.modules[name]


def lines(folder: Path, rank: int) -> list[tuple[int, str, dict[str, float]]]:
    """Give what a rank's file has: step, function, values."""
    read = map(json.loads, (folder / f"rank-{rank}.jsonl").read_text(encoding="utf-8").splitlines())
    return [(line["step"], line["function"], line["values"]) for line in read]


def functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Make functions that log; here, because the package is not always importable."""

    def train(epochs: int) -> int:
        import tracker

        for epoch in range(epochs):
            tracker.log(loss=1 / (epoch + 1), rank=sky.instance_info().global_worker_index)
        return epochs

    def stream(count: int) -> Iterator[int]:
        import tracker

        for number in range(count):
            tracker.log(number=number)
            yield number

    return sky.function(train), sky.function(stream)


@pytest.mark.slow
def test_what_ranks_log_is_in_files_of_their_own(tracker: Any, tmp_path: Path) -> None:
    """In order, numbered through by each process, and complete once the pool is left."""
    train, stream = functions()
    plugin = tracker.plugin.tracker(str(tmp_path), run="first")
    with sky.Compute(nodes=2, plugins=[plugin], console="silent") as pool:
        assert [3, 3] == train(3) @ pool
        rank = sky.function(lambda: sky.instance_info().global_worker_index)
        assert [0, 1] == rank() @ pool
        assert [0, 1] == list(stream(2) >> pool)
    trained = [[(step, "train", {"loss": 1 / (step + 1), "rank": rank}) for step in range(3)] for rank in range(2)]
    assert trained == [lines(tmp_path / "first", rank)[:3] for rank in range(2)]
    streamed = lines(tmp_path / "first", 0)[3:] + lines(tmp_path / "first", 1)[3:]
    assert [(3, "stream", {"number": 0}), (4, "stream", {"number": 1})] == streamed
    about = json.loads((tmp_path / "first" / "run.json").read_text(encoding="utf-8"))
    assert ("pool", 2) == (about["pool"], about["nodes"])


@pytest.mark.slow
def test_what_is_logged_without_the_plugin_goes_nowhere(tracker: Any) -> None:
    """Neither here nor on a pool is it an error."""
    train, _ = functions()
    assert 2 == train.local(2)
    with sky.Compute(console="silent") as pool:
        assert 2 == train(2) >> pool


def test_a_run_that_has_ended_is_not_written_over(tracker: Any, tmp_path: Path) -> None:
    """The pool is not opened."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "run.json").write_text("{}")
    plugin = tracker.plugin.tracker(str(tmp_path), run="first")
    with (
        pytest.raises(sky.ConfigError, match=r"has ended\. Give this one another name"),
        sky.Compute(plugins=[plugin], console="silent"),
    ):
        raise AssertionError


def test_it_is_short() -> None:
    """As the guide says."""
    assert 150 >= sum(len(path.read_text("utf-8").splitlines()) for path in TRACKER.rglob("*.py"))


@pytest.mark.packaging
@pytest.mark.timeout(300)
@pytest.mark.xdist_group("packaging")
def test_the_example_of_its_readme_runs_where_it_is_installed(tmp_path: Path) -> None:
    """As a wheel, found by its entry point."""
    python = installed(tmp_path, TRACKER)
    (code,) = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    (tmp_path / "program.py").write_text(code, encoding="utf-8")
    run([python, "program.py"], tmp_path, SKYWARD_CACHE=str(tmp_path / "cache"))
    expected = [(step, "train", {"loss": 1 / (step + 1)}) for step in range(10)]
    assert [expected, expected] == [lines(tmp_path / "runs" / "first", rank) for rank in range(2)]
    assert 2 == json.loads((tmp_path / "runs" / "first" / "run.json").read_text(encoding="utf-8"))["nodes"]
