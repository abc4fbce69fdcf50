"""The folders of all pools: what is listed, and what goes when there is too much."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from skyward.engine.logs.log_folder import LOCKS, logs_path, pool_folder, prune, stored_pools, write_facts


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a directory for state of its own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))


def pool(pool_id: str, began: float, size: int = 0) -> Path:
    folder = pool_folder(pool_id)
    write_facts(folder / "pool.json", {"id": pool_id, "name": "train", "began": began, "run": 1})
    (folder / "output.001.000001.jsonl").write_bytes(b"x" * size)
    os.utime(folder, (began, began))
    return folder


def test_without_any_there_is_none() -> None:
    """Not even a folder."""
    assert [] == stored_pools()
    assert [] == prune("")


def test_pools_are_listed_newest_first() -> None:
    """By when they began."""
    pool("a", 1.0)
    pool("b", 3.0)
    pool("c", 2.0)
    assert ["b", "c", "a"] == [one.id for one in stored_pools()]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"skyward_log": 99}', '{"skyward_log": 1}', '{"skyward_log": 1, "id": 1}']
)
def test_what_cannot_be_read_is_named_and_passed_over(text: str, caplog: pytest.LogCaptureFixture) -> None:
    """Damaged, of a newer version, or something else."""
    (pool("a", 1.0) / "pool.json").write_text(text)
    pool("b", 2.0)
    with caplog.at_level(logging.WARNING, "skyward"):
        assert ["b"] == [one.id for one in stored_pools()]
    assert str(pool_folder("a")) in caplog.text


def test_the_oldest_pools_go_when_there_is_too_much() -> None:
    """By bytes and by number; what is open, and the newest, stays."""
    for number in range(5):
        pool(f"p{number}", float(number), size=1000)
    assert LOCKS.acquire("p0")
    try:
        assert ["p1"] == prune("p4", most=10_000, pools=4)
        assert ["p2", "p3"] == prune("p4", most=2500)
    finally:
        LOCKS.release("p0", over=True)
    assert {"p0", "p4"} == {path.name for path in logs_path().iterdir()}


def test_enough_room_removes_nothing() -> None:
    """However many looks there are."""
    pool("a", 1.0, size=1000)
    assert [] == prune("b", most=100_000)
