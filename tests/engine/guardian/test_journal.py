"""
What was asked of clouds is written down before they are asked.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen

from skyward.engine.guardian import journal as journals
from skyward.engine.guardian.journal import Journal, journal_path, launches
from skyward.errors import PluginError
from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import LaunchRequest
from skyward.model.instances.offer import Offer
from skyward.model.spec.spec import Spec
from tests.full_disk import full_disk

CLUSTER = Cluster(
    pool_id="a1",
    pool_name="train",
    spec=Spec(),
    offer=Offer(provider="cloud", instance_type="small", region="eu"),
    provider="cloud",
    nodes=2,
)


@frozen
class Network:
    """What a cloud leaves behind."""

    vpc: str
    groups: tuple[str, ...] = ()


@frozen
class Leaky:
    """The same with a secret in it."""

    vpc: str
    key: str = field(repr=False)


def request(token: str) -> LaunchRequest:
    return LaunchRequest(cluster=CLUSTER, nodes=[0, 1], token=token, spot=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.sqlite"


@pytest.fixture
def journal(path: Path) -> Iterator[Journal]:
    made = Journal(path)
    yield made
    made.close()


def ask(journal: Journal, token: str = "t", infra: Any = None) -> None:
    asyncio.run(journal.asked(request(token), "cloud", infra))


def test_a_launch_is_on_disk_before_it_is_asked_for(journal: Journal, path: Path) -> None:
    """With all that is needed to find what came of it."""
    ask(journal, infra=Network("vpc-1", ("sg-1",)))
    (launch,) = launches(path)
    assert (launch.token, launch.pool_id, launch.provider, launch.region) == ("t", "a1", "cloud", "eu")
    assert (launch.nodes, launch.spot, launch.ids, launch.open) == ((0, 1), True, None, True)
    assert launch.infra == {"vpc": "vpc-1", "groups": ["sg-1"]}


def test_a_launch_is_open_until_every_machine_is_given_back(path: Path) -> None:
    """Or until the answer says that there is none."""
    journal = Journal(path)
    ask(journal)
    ask(journal, "none")
    journal.answered("t", ["i-1", "i-2"])
    journal.answered("none", [])
    journal.ended("t", "i-1")
    journal.close()
    assert [(one.token, one.open) for one in launches(path)] == [("t", True), ("none", False)]
    journal = Journal(path)
    journal.ended("t", "i-2")
    journal.close()
    assert [one.open for one in launches(path)] == [False, False]


def test_a_pool_of_which_nothing_is_listed_is_settled(journal: Journal, path: Path) -> None:
    """Also the launches whose answers were lost."""
    ask(journal, "lost")
    ask(journal)
    journal.answered("t", ["i-1"])
    journal.settled("a1")
    journal.close()
    assert [launch.open for launch in launches(path)] == [False, False]


@pytest.mark.parametrize("infra", [Leaky("vpc-1", "secret"), {"networks": [Leaky("vpc-1", "secret")]}])
def test_a_secret_is_not_written_down(journal: Journal, path: Path, infra: Any) -> None:
    """What a provider hides from its repr is one."""
    with pytest.raises(PluginError, match=r"'key' is kept out of its repr") as caught:
        ask(journal, infra=infra)
    assert "secret_" not in str(caught.value)
    assert launches(path) == []


def test_what_json_cannot_hold_is_refused(journal: Journal) -> None:
    """By the provider's name."""
    with pytest.raises(PluginError, match=r"'cloud' returned a object"):
        ask(journal, infra=object())


def test_only_the_user_reads_it(journal: Journal, path: Path) -> None:
    """The names of pools and machines are for no other user."""
    ask(journal)
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


def test_a_damaged_journal_is_put_aside(path: Path) -> None:
    """And a new one begun: the clouds' tags are the truth."""
    path.parent.mkdir(parents=True)
    path.write_bytes(b"no database" * 100)
    journal = Journal(path)
    ask(journal)
    journal.close()
    assert len(launches(path)) == 1
    assert len(list(path.parent.glob("*.damaged"))) == 1


def test_a_journal_that_is_locked_is_not_put_aside(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches do not wait for it for long, and the pending rows are written when it is free."""
    monkeypatch.setattr("skyward.engine.guardian.journal._WRITING", 0.1)
    ask(first := Journal(path), "before")
    first.close()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ask(journal := Journal(path), "meanwhile")
        other.execute("ROLLBACK")
    journal.answered("meanwhile", ["i-1"])
    journal.close()
    assert [("before", None), ("meanwhile", ("i-1",))] == [(one.token, one.ids) for one in launches(path)]
    assert [] == list(path.parent.glob("*.damaged"))


def test_a_journal_without_room_is_written_when_there_is_some(path: Path) -> None:
    """Launches do not wait for it, and it is not put aside; its rows can be read."""
    ask(journal := Journal(path), "before")
    with full_disk():
        ask(journal, "meanwhile")
        journal.answered("meanwhile", ["i-1"])
        ask(other := Journal(path), "another")
        assert ["before"] == [launch.token for launch in launches(path)]
    journal.close()
    other.close()
    assert {"before": None, "meanwhile": ("i-1",), "another": None} == {one.token: one.ids for one in launches(path)}
    assert [] == list(path.parent.glob("*.damaged"))


def test_a_journal_that_cannot_be_written_stops_nobody(tmp_path: Path) -> None:
    """It stands in the log, and work goes on."""
    (tmp_path / "file").touch()
    journal = Journal(tmp_path / "file" / "journal.sqlite")
    ask(journal)
    journal.answered("t", ["i-1"])
    journal.close()


def _write(path: Path, number: int) -> None:
    journal = Journal(path)
    for index in range(20):
        ask(journal, f"{number}-{index}")
        journal.answered(f"{number}-{index}", [f"i-{index}"])
    journal.close()


def test_many_clients_write_at_once(path: Path) -> None:
    """Nothing is lost, and no client waits for long."""
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write, args=(path, number)) for number in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len([one for one in launches(path) if one.ids]) == 60


def test_another_version_is_put_aside(path: Path) -> None:
    """A newer program may have written it."""
    ask(made := Journal(path))
    made.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version=99")
    connection.close()
    assert launches(path) == []


def test_the_journal_is_where_state_belongs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A directory of ours, else the user's for state."""
    monkeypatch.delenv("SKYWARD_STATE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert journal_path() == tmp_path / "skyward" / "journal.sqlite"
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "ours"))
    assert journal_path() == tmp_path / "ours" / "journal.sqlite"
    monkeypatch.setenv("SKYWARD_STATE", "~/ours")
    assert journal_path() == Path.home() / "ours" / "journal.sqlite"


def test_what_comes_together_is_written_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand machines that are given back wait for the disk a few times; one write to blame keeps no other out."""
    all_came, commits = threading.Event(), list[str]()
    connect = journals._connect

    def traced(path: Path) -> sqlite3.Connection:
        connection = connect(path)
        connection.set_trace_callback(lambda statement: commits.append(statement) if statement == "COMMIT" else None)
        return connection

    monkeypatch.setattr(journals, "_connect", traced)
    journal = Journal(path)
    ask(journal)
    journal._work.put(journals._Write("SELECT 1", (), lambda: all_came.wait(10)))
    for number in range(1000):
        journal.ended("t", f"i-{number}" if number else "\ud800")
    all_came.set()
    journal.close()
    # One by one only those that came with the one to blame.
    assert 3 < len(commits) < 270
    [launch] = launches(path)
    assert {f"i-{number}" for number in range(1, 1000)} == set(launch.ended)
