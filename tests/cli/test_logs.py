"""`sky logs` and `sky cost`, as they are typed, over logs as pools store them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skyward.cli.main import main
from skyward.engine.logs.log_folder import pool_folder, write_facts
from skyward.engine.logs.stored_log import StoredLog
from skyward.link.messages import LogLine
from skyward.model.events import event as events
from skyward.plan.logs.hidden_values import Hidden
from tests.waiting import until

RECEIPT = {"total_cost": 3.0, "savings": 1.0, "nodes": [{"provider": "aws", "cost": 3.0}]}
LAUNCHED = events.InstanceLaunched(
    instance_id="i-1", node=0, spot=False, provider="runpod", price_on_demand=2.0, at=1000.0
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a directory for state of its own, and a clock that shows UTC."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))


def log_of(pool_id: str, name: str, began: float) -> StoredLog:
    facts = {"id": pool_id, "name": name, "began": began, "provider": "aws", "what": "2 nodes with 1 × A100"}
    log = StoredLog(pool_id, facts, Hidden(()))
    log.start()
    return log


@pytest.fixture
def train() -> None:
    """A pool that has ended, with a receipt."""
    log = log_of("3fa9c1d2", "train", 1000.0)
    log.event(events.NodeReady(node=0, at=1001.0))
    log.lines(0, 1, [LogLine(7, "epoch 1")])
    log.lines(1, 1, [LogLine(8, "epoch 2")])
    log.close("ended", "", None)
    end = pool_folder("3fa9c1d2") / "end.001.json"
    write_facts(end, {"run": 1, "how": "ended", "ended": 4600.0, "reason": "", "receipt": RECEIPT})


@pytest.fixture
def sweep() -> Iterator[StoredLog]:
    """A pool that is open, newer than the other."""
    log = log_of("77c0ffee", "sweep-7", 2000.0)
    log.event(LAUNCHED)
    until(lambda: any("InstanceLaunched" in path.read_text() for path in log.folder.glob("events*")))
    yield log
    log.close("ended", "", None)


def typed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], str]:
    """Type something, and give exit code, lines and complaints."""
    code = main(words)
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err


@pytest.mark.usefixtures("train")
@pytest.mark.parametrize(
    ("words", "texts"),
    [
        ((), ["node-0 · ready", "node-0 | epoch 1", "node-1 | epoch 2"]),
        (("train", "--node", "1"), ["node-1 | epoch 2"]),
        (("3fa9", "--task", "7"), ["node-0 | epoch 1"]),
        (("--since", "1h"), ["node-0 | epoch 1", "node-1 | epoch 2"]),
        (("--tail", "1"), ["node-1 | epoch 2"]),
        (("-n", "0"), []),
        (("-f",), ["node-0 · ready", "node-0 | epoch 1", "node-1 | epoch 2"]),
    ],
)
def test_a_log_is_printed(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], texts: list[str]) -> None:
    """With the time of each line, and only what is wanted of it."""
    code, lines, complaint = typed(capsys, "logs", *words)
    assert (0, "") == (code, complaint)
    assert texts == [line[20:] for line in lines]


@pytest.mark.usefixtures("train", "sweep")
def test_the_newest_pool_is_meant_where_none_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """And any other by its name."""
    assert not any("epoch" in line for line in typed(capsys, "logs")[1])
    assert any("epoch" in line for line in typed(capsys, "logs", "train")[1])


@pytest.mark.usefixtures("train", "sweep")
def test_an_unknown_pool_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    """With the nearest name."""
    code, lines, complaint = typed(capsys, "logs", "trian")
    assert (1, []) == (code, lines)
    assert "No pool 'trian' has a stored log here. Did you mean 'train'?" in complaint


@pytest.mark.parametrize("words", [("--since", "soon"), ("--tail", "-3"), ("--node", "x")])
def test_what_makes_no_sense_ends_with_two(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    """Before any log is looked at."""
    assert 2 == typed(capsys, "logs", *words)[0]


@pytest.mark.usefixtures("train", "sweep")
def test_pools_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """Newest first, with what they are."""
    _, lines, _ = typed(capsys, "logs", "--list")
    assert ["POOL", "sweep-7", "train"] == [line.split()[0] for line in lines]
    assert "open" in lines[1]
    assert "ended" in lines[2]
    assert lines[2].endswith("2 nodes with 1 × A100")
    [sweep, train] = json.loads("\n".join(typed(capsys, "logs", "--list", "--json")[1]))
    assert ("77c0ffee", "open", None) == (sweep["id"], sweep["state"], sweep["ended"])
    assert [train["path"]] == typed(capsys, "logs", "train", "--path")[1]


@pytest.mark.usefixtures("train")
def test_a_log_is_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line."""
    found = [json.loads(line) for line in typed(capsys, "logs", "--json")[1]]
    assert ["opened", "event", "line", "line"] == [each["kind"] for each in found]
    assert ("NodeReady", "ready", 1001.0) == (found[1]["event"], found[1]["text"], found[1]["at"])
    assert {"node": 1, "task": "8", "stream": "stdout", "text": "epoch 2"} == {
        name: value for name, value in found[3].items() if name not in ("at", "kind")
    }


def test_an_open_pool_is_followed_to_its_end(sweep: StoredLog, capsys: pytest.CaptureFixture[str]) -> None:
    """What comes meanwhile is printed."""

    def go_on() -> None:
        sweep.lines(0, 1, [LogLine(0, "the last words")])
        sweep.close("ended", "", None)

    later = threading.Timer(0.5, go_on)
    later.start()
    _, lines, _ = typed(capsys, "logs", "sweep-7", "-f")
    later.join()
    assert lines[-1].endswith("node-0 | the last words")


@pytest.mark.usefixtures("train")
def test_a_pipe_that_closes_ends_quietly() -> None:
    """As `sky logs | head` has it."""
    sky = Path(sys.executable).with_name("sky")
    for number in range(3):
        log = log_of(f"long{number}", "long", 5000.0 + number)
        for _ in range(20):
            log.lines(0, 1, [LogLine(0, "x" * 100)] * 1000)
            until(lambda log=log: not log._queue)
        log.close("ended", "", None)
    done = subprocess.run(
        f"{sky} logs long | head -1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ},
        check=True,
    )
    assert "" == done.stderr
    assert 1 == len(done.stdout.splitlines())


@pytest.mark.usefixtures("train", "sweep")
@pytest.mark.parametrize(
    ("by", "rows"),
    [
        ("pool", [("sweep-7", "77c0ffee"), ("train", "3fa9c1d2")]),
        ("provider", [("runpod", "1"), ("aws", "1")]),
    ],
)
def test_costs_are_added_up(capsys: pytest.CaptureFixture[str], by: str, rows: list[tuple[str, str]]) -> None:
    """By receipts, and as an estimate for a pool that is open."""
    code, lines, complaint = typed(capsys, "cost", "--by", by)
    assert (0, "") == (code, complaint)
    assert rows == [tuple(line.split()[:2]) for line in lines[1:3]]
    assert lines[1].split()[2].startswith("~$")
    assert ["$3.00", "$1.00"] == lines[2].split()[2:]
    assert lines[3].startswith("total")
    assert "is an estimate, of a pool that is open or has no receipt." in lines[4]


@pytest.mark.usefixtures("train")
def test_costs_are_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """With how much of it is an estimate."""
    found: dict[str, Any] = json.loads("\n".join(typed(capsys, "cost", "--json")[1]))
    assert ("day", 3.0, 1.0, 0) == tuple(found[name] for name in ("by", "cost", "savings", "estimate"))
    assert 3.0 == sum(row["cost"] for row in found["rows"])
    since = json.loads("\n".join(typed(capsys, "cost", "--json", "--since", "1d")[1]))
    assert [] == since["rows"]


def test_nothing_spent_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Where no pool ever cost anything."""
    assert (0, ["Nothing was spent by pools of this computer."]) == typed(capsys, "cost")[:2]
