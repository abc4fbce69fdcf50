"""One subject can be measured anew: the page is made of the latest figures of each, and each needs only its own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])


class Asked(dict[str, Any]):
    """Results of no job, which remember what was looked for."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return default

    def items(self) -> Any:
        return {}.items()

    def __iter__(self) -> Iterator[str]:
        return iter(())


def test_a_subject_is_judged_by_its_own_jobs() -> None:
    import run

    for name, subject in run.SUBJECTS.items():
        asked = Asked()
        subject.rows(asked)
        assert asked.names, name
        assert asked.names <= set(subject.jobs(False)), name


def test_figures_are_read_as_they_were_written(tmp_path: Path) -> None:
    from measure.harness import Outcome
    from measure.stored import Measured, of_json, read, to_json

    kept = {
        "calls": Measured("2026-11-24", 3, {"a no-op": Outcome(({"ms": 0.5}, {"ms": 0.25}))}),
        "data": Measured("2026-11-25", 1, {"an array": Outcome(failure="not installed")}),
    }
    file = tmp_path / "results.json"
    assert read(file, "2 cores") == {}
    file.write_text(to_json("2 cores", kept), encoding="utf-8")
    assert read(file, "2 cores") == kept
    assert of_json(file.read_text(encoding="utf-8"), "2 cores, but a newer Ray") == {}
    assert json.loads(to_json("m", dict(reversed(kept.items())))) == json.loads(to_json("m", kept))


def test_the_page_names_the_day_of_each_subject() -> None:
    from measure.stored import Measured, when

    kept = {"calls": Measured("2026-11-24", 3, {}), "data": Measured("2026-11-25", 1, {})}
    assert when(kept, ["calls", "data"]) == "2026-11-24, 3 rounds (calls); 2026-11-25, 1 round (data)"
    assert when(kept, ["calls"]) == "2026-11-24, 3 rounds"


@pytest.mark.parametrize(
    ("after", "share"),
    [("cpu 100 0 0 100 0 0 0 0", 0.5), ("cpu 0 0 0 100 100 0 0 0", 0.0), ("cpu 0 0 0 0 0 0 0 0", 0.0)],
    ids=["half", "waiting for a disk", "no time has passed"],
)
def test_a_busy_machine_is_known_by_its_processors_time(after: str, share: float) -> None:
    from measure.quiet import busy_share

    assert busy_share("cpu 0 0 0 0 0 0 0 0 0 0\ncpu0 1", after + " 7 7\ncpu0 9") == share
