"""A pool's log is written by a thread of its own, and whatever goes wrong there ends the log and never the pool."""

from __future__ import annotations

import json
import logging
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skyward.engine.logs.log_folder import LOCKS, stored_pools
from skyward.engine.logs.log_reader import LogReader
from skyward.engine.logs.stored_log import StoredLog
from skyward.link.messages import LogLine
from skyward.model.events import event as events
from skyward.model.instances.cost_report import Receipt
from skyward.plan.logs.hidden_values import Hidden
from skyward.plan.logs.log_format import Record, calls_of
from tests.full_disk import full_disk
from tests.waiting import until

FACTS = {"id": "3fa9c1d2", "name": "train", "began": 5.0, "provider": "aws", "what": "2 nodes"}

Make = Callable[..., StoredLog]


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Have a directory for state of its own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def make() -> Iterator[Make]:
    """Return a function that starts a log, which is closed when the test ends."""
    made: list[StoredLog] = []

    def start(**settings: Any) -> StoredLog:
        log = StoredLog("3fa9c1d2", FACTS, Hidden(["hf_secret"]), **settings)
        made.append(log)
        log.start()
        return log

    yield start
    for log in made:
        log.close("ended", "", None)


def call(number: int, function: str = "train") -> Any:
    now = time.monotonic()
    return SimpleNamespace(id=number, function=SimpleNamespace(name=function), asked=now - 0.5, began=now - 0.25, on=1)


def answer(*, failed: bool = False, stopped: bool = False, node: int | None = 0) -> Any:
    return SimpleNamespace(failed=failed, stopped=stopped, node=node, headline=lambda: "ValueError: hf_secret")


def read(log: StoredLog) -> list[Record]:
    return list(LogReader(log.folder).read())


def test_what_happens_is_read_in_order(make: Make) -> None:
    """Events, lines and calls, with how the pool ended."""
    log = make()
    log.event(events.NodeReady(node=1, at=7.0))
    log.lines(1, 2, [LogLine(12, "epoch 1"), LogLine(0, "warming up")])
    log.began(call(12), 1)
    log.ended(call(12), answer(node=1), again=False)
    log.close("ended", "the pool was left", Receipt(total_cost=2.5))
    found = read(log)
    assert ["opened", "event", "line", "line", "calls"] == [line["k"] for line in found]
    assert ("NodeReady", "ready", 1, 7.0) == tuple(found[1][name] for name in ("event", "say", "node", "t"))
    assert [("epoch 1", "12", 1), ("warming up", None, 1)] == [
        (line["text"], line.get("task"), line["err"]) for line in found[2:4]
    ]
    [done] = calls_of(found[4])
    assert ("12", "train", 1, "ok") == (done.task, done.function, done.node, done.outcome)
    assert done.ended - done.sent == pytest.approx(0.5, abs=0.2)
    [pool] = stored_pools()
    assert ("train", "ended", "the pool was left") == (pool.name, pool.state, pool.reason)
    assert 2.5 == pool.receipts[0]["total_cost"]


def test_it_is_this_users_alone(make: Make, state: Path) -> None:
    """The folders, and each file in them."""
    log = make()
    log.lines(0, 1, [LogLine(0, "hello")])
    log.close("ended", "", None)
    modes = {path.relative_to(state).as_posix(): stat.S_IMODE(path.stat().st_mode) for path in state.rglob("*")}
    assert {0o700, 0o600} == set(modes.values())
    assert all((mode == 0o600) == ("." in name) for name, mode in modes.items())


def test_secrets_are_hidden(make: Make) -> None:
    """In lines, events, errors of calls and the reason of the end."""
    log = make()
    log.lines(0, 1, [LogLine(0, "token hf_secret"), LogLine(0, "https://me:pw@host/")])
    log.event(events.Error(message="hf_secret is refused"))
    log.ended(call(1), answer(failed=True), again=False)
    log.close("failed", "ConfigError: hf_secret", None)
    text = "".join(path.read_text() for path in log.folder.iterdir())
    assert "hf_secret" not in text
    assert "me:pw" not in text
    assert text.count("***") >= 5


def test_another_program_reads_it_meanwhile(make: Make) -> None:
    """It is there a moment later, and the pool is seen to be open."""
    log = make()
    log.lines(0, 1, [LogLine(0, "hello")])
    until(lambda: [line for line in read(log) if line["k"] == "line"])
    assert ["open"] == [pool.state for pool in stored_pools()]
    log.close("ended", "", None)
    assert not LOCKS.held("3fa9c1d2")
    assert ["ended"] == [pool.state for pool in stored_pools()]


def test_a_call_that_runs_for_long_is_told_while_it_runs(make: Make) -> None:
    """So that a reader of a pool that died knows of it."""
    log = make()
    log.began(SimpleNamespace(**{**vars(call(7)), "began": time.monotonic() - 5.0}), 1)
    [running] = until(lambda: [line for line in read(log) if line["k"] == "running"])
    assert (7, "train", 1) == (running["task"], running["fn"], running["node"])


def test_what_does_not_fit_is_counted(make: Make) -> None:
    """A queue that is full holds nothing up."""
    log = make(waiting=10)
    log.lines(0, 1, [LogLine(0, "x")] * 11)
    log.close("ended", "", None)
    [lost] = [line for line in read(log) if line["k"] == "lost"]
    assert (11, 0, 0) == (lost["lines"], lost["calls"], lost["events"])


def test_output_never_drops_events(make: Make) -> None:
    """The oldest output goes, and the log says so."""
    log = make(most={"events": 1 << 20, "calls": 1 << 20, "output": 1 << 20})
    log.event(events.NodeReady(node=1))
    for number in range(40):
        log.lines(0, 1, [LogLine(0, f"{number} " + "x" * 8000)] * 100)
        until(lambda: not log._queue)
    log.close("ended", "", None)
    found = read(log)
    assert "NodeReady" in [line.get("event") for line in found]
    assert "output" in [line.get("stream") for line in found if line["k"] == "dropped"]
    assert "39 xxx" in [line["text"][:6] for line in found if line["k"] == "line"]
    assert sum(path.stat().st_size for path in log.folder.iterdir()) < 40 << 20


def test_a_pool_that_is_attached_goes_on_with_its_log(make: Make) -> None:
    """As another run, whose receipt counts, too."""
    make().close("detached", "", Receipt(total_cost=1.0))
    second = make()
    second.event(events.NodeReady(node=1))
    second.close("ended", "", Receipt(total_cost=2.0))
    assert ["opened", "opened", "event"] == [line["k"] for line in read(second)]
    [pool] = stored_pools()
    assert (2, "ended", [1.0, 2.0], 5.0) == (
        pool.run, pool.state, [receipt["total_cost"] for receipt in pool.receipts], pool.began,
    )  # fmt: skip


def test_a_full_disk_ends_the_log_with_one_warning(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever comes after costs nothing, and closing does not wait."""
    log = make()
    until(lambda: read(log))
    with caplog.at_level(logging.WARNING, "skyward"), full_disk():
        log.event(events.NodeReady(node=1))
        until(lambda: log._broken)
        for _ in range(100):
            log.event(events.NodeReady(node=1))
            log.lines(0, 1, [LogLine(0, "x")])
        log.close("ended", "", None)
    assert 1 == len([record for record in caplog.records if "stored log" in record.message])
    assert ["opened"] == [line["k"] for line in read(log)]


def test_a_place_that_cannot_be_used_ends_the_log(make: Make, state: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A file in the place of the folder, for one."""
    state.parent.mkdir(exist_ok=True)
    state.write_text("")
    with caplog.at_level(logging.WARNING, "skyward"):
        make().close("ended", "", None)
    assert "ends here, and the pool goes on without it" in caplog.text


def test_an_end_is_written_as_plain_json(make: Make) -> None:
    """With its version, for whatever reads it later."""
    log = make()
    log.close("ended", "the pool was left", Receipt(total_cost=2.5))
    end = json.loads((log.folder / "end.001.json").read_text())
    assert (1, 1, "ended", 2.5) == (end["skyward_log"], end["run"], end["how"], end["receipt"]["total_cost"])
