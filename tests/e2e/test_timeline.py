"""`pool.trace` records what a real pool does, and what follows a call goes with it to its node."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.hookspecs import CallTimes, Follower


@sky.function
def nap(seconds: float) -> float:
    """Sleep."""
    time.sleep(seconds)
    return seconds


@sky.function
def fail(_: object = None) -> None:
    """Fail."""
    raise ValueError("as told")


@sky.function(retries=1)
def stubborn() -> None:
    """Fail, and again."""
    raise ValueError("as told")


def slices(path: Path, name: str) -> list[dict[str, Any]]:
    """Return the slices of a name in a timeline."""
    return [line for line in json.loads(path.read_text()) if line["ph"] == "X" and line["name"] == name]


def test_a_block_of_an_open_pool_is_recorded(pool: sky.Pool, tmp_path: Path) -> None:
    """Each call is a slice on the slot where it ran; those before and after the block are not there."""
    path = tmp_path / "out.json"
    nap(0.0) >> pool
    with pool.trace(path):
        nap(0.1) @ pool
        pool.map(nap, [0.0] * 10)
        with pytest.raises(ValueError, match="as told"):
            fail() >> pool
    nap(0.0) >> pool
    runs = slices(path, "nap")
    assert 12 == len(runs)
    assert {2, 3} == {run["pid"] for run in runs}
    long = [run for run in runs if run["dur"] > 90_000]
    assert 2 == len(long)
    # Both at once, each for as long as it slept.
    assert abs(long[0]["ts"] - long[1]["ts"]) < 90_000
    (failed,) = slices(path, "fail")
    assert ("failed", "ValueError: as told") == (failed["args"]["outcome"], failed["args"]["failure"])
    assert {2, 3} == {phase["pid"] for phase in slices(path, "ready")}


def test_slices_of_a_slot_do_not_overlap(pool: sky.Pool, tmp_path: Path) -> None:
    """Although calls are sent ahead, and each says itself when it began."""
    with pool.trace(tmp_path / "out.json"):
        pool.map(nap, [0.001] * 50)
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for run in slices(tmp_path / "out.json", "nap"):
        rows.setdefault((run["pid"], run["tid"]), []).append((run["ts"], run["dur"]))
    assert 2 == len(rows)
    for row in map(sorted, rows.values()):
        assert all(start + length <= after + 1.0 for (start, length), (after, _) in itertools.pairwise(row))


def test_a_pool_is_recorded_from_its_first_machine_to_its_last(tmp_path: Path) -> None:
    """If the recording begins before the pool is open; it ends with the pool."""
    pool = sky.Compute(console="silent")
    pool.trace(tmp_path / "out.json")
    with pool:
        nap(0.0) >> pool
    names = [line["name"] for line in json.loads((tmp_path / "out.json").read_text()) if line.get("cat") == "machine"]
    for phase in ("launch", "bootstrap", "ready", "terminate"):
        assert phase in names
    assert 1 == len(slices(tmp_path / "out.json", "nap"))


def test_a_retry_is_two_slices(pool: sky.Pool, tmp_path: Path) -> None:
    """The first one says that another followed."""
    with pool.trace(tmp_path / "out.json"), pytest.raises(ValueError, match="as told"):
        stubborn() >> pool
    assert ["retried", "failed"] == [run["args"]["outcome"] for run in slices(tmp_path / "out.json", "stubborn")]


class Texts(Follower):
    """A follower that sends a number along."""

    def __init__(self) -> None:
        self.sent = 0
        self.calls: list[CallTimes] = []
        self.over = False

    def submitted(self, function: str) -> str:
        self.sent += 1
        return f"{function} {self.sent}"

    def ended(self, call: CallTimes) -> None:
        self.calls.append(call)

    def left(self) -> None:
        self.over = True


@sky.function
def brought(*_: object) -> sky.Carried | None:
    """Return what the call brought along."""
    return sky.carried("texts")


def test_a_text_travels_with_each_call() -> None:
    """With its numbers, by which both sides name it; nothing for another plugin, or outside a task."""
    texts = Texts()
    plugin = sky.Plugin.create("texts").with_follower(lambda pool: texts)
    with sky.Compute(console="silent", plugins=[plugin], nodes=2) as pool:
        one = brought() >> pool
        large = brought(b"x" * 3_000_000) >> pool
        both = brought() @ pool
        mapped = pool.map(brought, [1, 2])
    got = [one, large, *both, *mapped]
    assert None not in got
    assert {(each.text, each.task, each.attempt) for each in got} == {  # type: ignore[union-attr]
        (call.carried, call.task, call.attempt) for call in texts.calls
    }
    assert 1 == len({each.text for each in both})  # type: ignore[union-attr]
    assert [True, True] == [bool(each.broadcast) for each in both]  # type: ignore[union-attr]
    assert sky.carried("texts") is None
    assert texts.over
