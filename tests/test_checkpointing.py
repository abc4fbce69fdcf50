"""What `sky.checkpoint` takes, and which call it finds; calls on nodes are in tests/e2e/test_checkpoints.py."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward.node.task import task_context


def test_outside_of_tasks_the_process_counts_as_the_call() -> None:
    """So that functions can be tried out as they are."""

    @sky.function
    def counted() -> int:
        saved = sky.checkpoint("counted")
        number: int = saved.load(0) + 1
        saved.save(number)
        return number

    assert [1, 2] == [counted().local(), counted().local()]
    sky.checkpoint("counted").delete()
    assert 1 == counted().local()
    sky.checkpoint("counted").delete()


def test_what_a_process_saved_ends_with_it(tmp_path: Path) -> None:
    """In its temporary folder."""
    code = "import skyward as sky; sky.checkpoint().save(1); print(sky.checkpoint().load())"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert "1\n" == done.stdout
    assert [] == os.listdir(tmp_path)


def test_a_key_outside_of_tasks_is_the_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There it stays."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    assert sky.checkpoint(key="run").load() is None
    sky.checkpoint(key="run").save(7)
    assert 7 == sky.checkpoint(key="run").load()
    assert ["named"] == os.listdir(tmp_path / "checkpoints")


def test_a_folder_may_be_named_in_several_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As text, as a path, from the user's home; outside of tasks also from here."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    sky.checkpoint(key="run", to=tmp_path / "kept").save(1)
    for to in (str(tmp_path / "kept"), "~/kept", "kept"):
        assert 1 == sky.checkpoint(key="run", to=to).load()


@pytest.mark.parametrize("keep", [0, -1, True, 1.5, "2", None])
def test_some_version_is_kept(keep: Any) -> None:
    """At least one."""
    with pytest.raises(sky.ConfigError, match="keep must be"):
        sky.checkpoint(keep=keep)


def test_a_key_has_no_name_beside_it() -> None:
    """It stands for itself."""
    with pytest.raises(sky.UsageError, match="a name of the call's or a key, not both"):
        sky.checkpoint("model", key="run")


@pytest.mark.parametrize("to", [7, object(), b"/mnt"])
def test_a_place_is_a_folder_or_storage(to: Any) -> None:
    """And nothing else."""
    with pytest.raises(sky.UsageError, match="is neither a folder nor storage"):
        sky.checkpoint(to=to)


def context(call: int) -> task_context.TaskContext:
    return task_context.TaskContext(call_id=call, facts={}, membership={"job_id": "a1"})


def test_a_relative_folder_is_refused_in_a_task() -> None:
    """Each node would take it for another one."""
    token = task_context.set_context(context(7))
    try:
        with pytest.raises(sky.UsageError, match="a relative path, and each node has a working directory of its own"):
            sky.checkpoint(to="kept")
    finally:
        task_context.reset_context(token)


def test_a_thread_of_several_calls_is_refused() -> None:
    """The checkpoint of a wrong call would be worse than none."""
    raised: list[str] = []

    def ask() -> None:
        try:
            raised.append(sky.checkpoint().address)
        except sky.UsageError as error:
            raised.append(str(error))

    def ask_in_a_thread() -> None:
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()

    outer = task_context.set_context(context(7))
    ask_in_a_thread()
    inner = task_context.set_context(context(8))
    ask_in_a_thread()
    task_context.reset_context(inner)
    task_context.reset_context(outer)
    assert "call-a1-7" == raised[0]
    assert "in a thread that several calls may have started" in raised[1]
