"""A timeline is written while the pool runs, and is whole whenever it is closed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import skyward as sky
from skyward.engine.events import timeline as timelines
from skyward.engine.events.timeline import Timeline
from skyward.model.events.event import InstanceLaunched, InstanceRequested, NodeReady
from skyward.model.instances.instance import InstanceInfo
from tests.full_disk import full_disk
from tests.plan.pool.test_trace_events import CALL
from tests.waiting import until


def test_calls_and_machines_are_in_one_file(tmp_path: Path) -> None:
    """Nodes are processes, with a thread for each machine and each slot."""
    timeline = Timeline(tmp_path / "out.json", "train")
    timeline.happened(InstanceRequested(node=1))
    timeline.happened(InstanceLaunched(instance_id="i-1", node=1, spot=False, provider="cloud"))
    timeline.ended(CALL)
    timeline.close()
    made = json.loads((tmp_path / "out.json").read_text())
    names = {(line["name"], line["args"]["name"]) for line in made if line["name"].endswith("_name")}
    assert {
        ("process_name", "client of pool train"),
        ("process_name", "node 1"),
        ("thread_name", "machine i-1"),
        ("thread_name", "process 0, slot 2"),
    } == names
    assert ["launch", "train", "boot"] == [line["name"] for line in made if line["ph"] == "X"]


def test_a_timeline_of_nothing_is_a_timeline(tmp_path: Path) -> None:
    """It has its client."""
    Timeline(tmp_path / "out.json", "train").close()
    assert "client of pool train" == json.loads((tmp_path / "out.json").read_text())[0]["args"]["name"]


def test_the_file_can_be_opened_before_it_is_whole(tmp_path: Path) -> None:
    """All it lacks is the bracket at its end, which readers of the format forgive."""
    path = tmp_path / "out.json"
    with Timeline(path, "train") as timeline:
        timeline.ended(CALL)
        until(lambda: '"ph":"X"' in path.read_text())
        assert json.loads(path.read_text() + "]")


def test_what_comes_after_its_end_is_left_out(tmp_path: Path) -> None:
    """Closing it twice does nothing."""
    timeline = Timeline(tmp_path / "out.json", "train")
    timeline.close()
    timeline.ended(CALL)
    timeline.happened(NodeReady(node=0, instance=InstanceInfo()))
    timeline.close()
    assert [] == [line for line in json.loads((tmp_path / "out.json").read_text()) if line["ph"] == "X"]


def test_a_file_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    """It names the file, and what to do."""
    with pytest.raises(sky.ConfigError, match=r"of pool 'train' cannot be written to .*-folder/out.json'"):
        Timeline(tmp_path / "no-such-folder" / "out.json", "train")


@pytest.mark.parametrize("bound", ["LARGEST", "WAITING"])
def test_what_is_too_much_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str) -> None:
    """Neither the file nor the memory grows without an end."""
    monkeypatch.setattr(timelines, bound, 0)
    path = tmp_path / "out.json"
    with Timeline(path, "train") as timeline:
        for _ in range(3):
            timeline.ended(CALL)
    assert "3 calls are left out" in [line["name"] for line in json.loads(path.read_text())]


def test_a_full_disk_stops_the_timeline_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It is said once."""
    with Timeline(tmp_path / "out.json", "train") as timeline, full_disk():
        for _ in range(5000):
            timeline.ended(CALL)
        timeline.close()
    assert 1 == sum("timeline.broken" in message for message in caplog.messages)
