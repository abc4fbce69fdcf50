"""GPUs of this machine are cut for a pool, and are as they were after it; tests/nvidia says what stands in for them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward_mig import smi
from skyward_mig.keeper import put_together
from skyward_mig.keeping import kept
from skyward_mig.record import Busy, Entry, held, place
from tests.nvidia.machine import Gpus

pytestmark = pytest.mark.slow

A100 = "A100-SXM4-80GB"
Give = Callable[..., Gpus]
QUIET: dict[str, Any] = {"console": "silent", "logging": False}


def cut(profile: str, ranks: int) -> AbstractContextManager[list[str]]:
    """Cut the GPUs as a node does, whose plugins say so."""
    return kept(profile, sky.InstanceInfo(workers_per_node=ranks))


def whole(gpus: Gpus) -> bool:
    """Tell whether nothing is cut, and nothing is owed."""
    return all(("Disabled", []) == one for one in gpus.cut) and _owed() == []


def _owed() -> list[Any]:
    return json.loads(place().read_text() or "[]") if place().exists() else []


def seen() -> tuple[str, str]:
    """Tell what a rank sees of GPUs."""
    return os.environ["CUDA_VISIBLE_DEVICES"], os.environ["SKYWARD_DEVICE"]


def test_each_rank_has_a_slice_to_itself_and_all_is_undone(here: Give) -> None:
    """Four ranks on two GPUs, each with another device; MIG mode is as it was afterwards."""
    gpus = here(A100, A100)
    with sky.Compute(per_node=4, plugins=[sky.plugins.mig("3g.40gb")], **QUIET) as pool:
        assert [("Enabled", ["3g.40gb", "3g.40gb"])] * 2 == gpus.cut
        devices, ranks = zip(*(sky.function(seen)() @ pool), strict=True)
        assert sorted(gpus.slices) == sorted(devices)
        assert ("0", "1", "2", "3") == ranks
    assert whole(gpus)


def test_a_worker_that_stands_in_has_the_slice_of_the_dead_one(here: Give) -> None:
    """Its process starts with the same device."""
    gpus = here(A100)
    with sky.Compute(per_node=2, plugins=[sky.plugins.mig("2g.20gb")], **QUIET) as pool:
        before = sky.function(seen)() @ pool
        with pytest.raises(sky.WorkerDiedError):
            sky.function(os._exit)(1) >> pool
        assert before == sky.function(seen)() @ pool
    assert whole(gpus)


def test_mode_that_was_on_stays_on(here: Give) -> None:
    """Only what was made is destroyed."""
    gpus = here(A100)
    smi.enable(gpus.gpus[0]["uuid"])
    with cut("1g.10gb", 7):
        assert [("Enabled", ["1g.10gb"] * 7)] == gpus.cut
    assert [("Enabled", [])] == gpus.cut
    assert [] == [line for line in gpus.asked if line.endswith("-mig 0")]


@contextmanager
def refused(message: str) -> Iterator[None]:
    with pytest.raises(sky.PluginError, match=message):
        yield


@pytest.mark.parametrize(
    ("models", "ranks", "profile", "message"),
    [
        ((A100,), 3, "3g.40gb", r"profile 3g.40gb: Insufficient Resources.* Ask for fewer ranks on each node"),
        ((A100,), 1, "3g.20gb", r"profile 3g.20gb: Invalid Argument"),
        (("A10",), 1, "3g.40gb", r"mig on node 0: NVIDIA A10 \(GPU-.*\) has no MIG"),
        ((), 1, "3g.40gb", "nvidia-smi finds no GPU"),
    ],
)
def test_what_the_machine_cannot_do_is_one_error_and_undone(
    here: Give, models: tuple[str, ...], ranks: int, profile: str, message: str
) -> None:
    """With what nvidia-smi says; slices that were made before the one that failed are destroyed."""
    gpus = here(*models)
    with refused(message), cut(profile, ranks):
        raise AssertionError
    assert [("Disabled" if model == A100 else "[N/A]", []) for model in models] == gpus.cut
    assert [] == _owed()


def test_machine_that_would_have_to_be_restarted(here: Give) -> None:
    """As virtual ones with A100 are; the mode does not lie in wait for the next restart."""
    gpus = here(A100, virtual=True)
    with refused("pending enable state.*has to be restarted"), cut("3g.40gb", 1):
        raise AssertionError
    assert ["Disabled"] == [gpu["pending"] for gpu in gpus.gpus]


def test_machine_without_nvidia_smi(here: Give) -> None:
    """It says what is missing."""
    here(A100, without="nvidia-smi")
    with refused("it cannot be run: No such file.*It comes with NVIDIA's driver"), cut("3g.40gb", 1):
        raise AssertionError


def test_pool_whose_gpus_cannot_be_cut_is_not_opened(here: Give) -> None:
    """The error of the node is the pool's."""
    gpus = here(A100)
    plugin = sky.plugins.mig("3g.40gb")
    with refused("mig on node 0: .*Insufficient Resources"), sky.Compute(per_node=3, plugins=[plugin], **QUIET):
        raise AssertionError
    assert whole(gpus)


def test_slices_of_others_are_left_alone(here: Give) -> None:
    """The pool is refused, and they are still there."""
    gpus = here(A100)
    uuid = gpus.gpus[0]["uuid"]
    smi.enable(uuid)
    smi.create(uuid, "1g.10gb", 1)
    with refused("is cut into 1 slices already, which are not ours"), cut("3g.40gb", 1):
        raise AssertionError
    assert [("Enabled", ["1g.10gb"])] == gpus.cut


def test_slices_in_use_are_waited_for(here: Give, tmp_path: Path) -> None:
    """A process of the pool that outlives its worker still uses its slice when that is to be destroyed."""
    gpus = here(A100)
    over = tmp_path / "over"

    def leave_one_behind(devices: str, over: str) -> int:
        script = 'exec 9<>"$0/$CUDA_VISIBLE_DEVICES" && flock -s 9 && echo && until [ -e "$1" ]; do sleep 0.1; done'
        words = ["env", "-u", "SKYWARD_NODE", "sh", "-c", script, devices, over]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout is not None
        return len(process.stdout.readline())

    def end_it_when_tried_twice() -> None:
        with suppress(AssertionError):
            _until(lambda: 2 <= len([line for line in gpus.asked if "-dci" in line]))
        over.touch()

    with ThreadPoolExecutor() as threads:
        with sky.Compute(plugins=[sky.plugins.mig("3g.40gb")], **QUIET) as pool:
            sky.function(leave_one_behind)(str(gpus.devices), str(over)) >> pool
            threads.submit(end_it_when_tried_twice)
        assert 3 <= len([line for line in gpus.asked if "-dci" in line])
    assert whole(gpus)


PROGRAM = """
import time
import skyward as sky

if __name__ == "__main__":
    with sky.Compute(per_node=2, plugins=[sky.plugins.mig("3g.40gb")], console="silent", logging=False) as pool:
        print("ready", sky.function(lambda: __import__("os").getppid())() >> pool, flush=True)
        time.sleep(300)
"""


@contextmanager
def client(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run a program with a pool, and give it with the number of its node's agent."""
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(PROGRAM))
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline().split()[1])
    finally:
        process.kill()
        process.communicate()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 45
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("victim", ["client", "agent", "app host", "whole node"])
def test_gpus_are_put_together_whoever_is_killed(here: Give, tmp_path: Path, victim: str) -> None:
    """By SIGKILL: the client, its agent, the process that asked for it, or all that runs on the node."""
    gpus = here(A100)
    with client(tmp_path) as (process, agent):
        assert [("Enabled", ["3g.40gb", "3g.40gb"])] == gpus.cut
        node = _mark(agent)
        if victim == "client":
            process.kill()
        elif victim == "agent":
            os.kill(agent, signal.SIGKILL)
        elif victim == "app host":
            (host,) = [pid for pid in _marked(node) if b"skyward.node.agent.app_host" in _words(pid)]
            os.kill(host, signal.SIGKILL)
        else:
            for pid in _marked(node):
                os.kill(pid, signal.SIGKILL)
        _until(lambda: whole(gpus))


def _marked(entry: bytes) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if entry in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def _mark(agent: int) -> bytes:
    """Give what the environment of every process of a node has."""
    entries = Path(f"/proc/{agent}/environ").read_bytes().split(b"\0")
    return next(entry for entry in entries if entry.startswith(b"SKYWARD_NODE="))


def _words(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


def test_what_nobody_could_undo_is_undone_by_the_next_one(here: Give) -> None:
    """As after a machine lost its power: the file that tells of it is still there, and so is the mode."""
    gpus = here(A100, A100)
    uuids = [gpu["uuid"] for gpu in gpus.gpus]
    for uuid in uuids:
        smi.enable(uuid)
    made = smi.create(uuids[0], "1g.10gb", 2)
    smi.create(uuids[1], "1g.10gb", 1)
    with held(place(), 0) as record:
        record.write([Entry(uuids[0], enabled=True, instances=made), Entry(uuids[1], enabled=True)])
    with cut("3g.40gb", 4):
        assert [("Enabled", ["3g.40gb", "3g.40gb"])] * 2 == gpus.cut
    assert whole(gpus)


def test_only_what_is_ours_is_destroyed(here: Give) -> None:
    """Another program's slice beside ours stays, and so does the mode that it needs."""
    gpus = here(A100)
    uuid = gpus.gpus[0]["uuid"]
    smi.enable(uuid)
    made = smi.create(uuid, "3g.40gb", 1)
    smi.create(uuid, "1g.10gb", 1)
    with held(place(), 0) as record:
        record.write([Entry(uuid, enabled=True, instances=made)])
        put_together(record)
        assert () == record.read()
    assert [("Enabled", ["1g.10gb"])] == gpus.cut


def test_gpus_are_cut_for_one_at_a_time(here: Give) -> None:
    """The process that comes second hears so, and gets nothing."""
    here(A100)
    with held(place(), 0), pytest.raises(Busy), held(place(), 0.2):
        raise AssertionError


@pytest.mark.parametrize("text", ["", "[{", '{"gpu": 1}', "[1]"])
def test_file_that_was_torn_owes_nothing(here: Give, text: str) -> None:
    """It is complete before anything is changed."""
    here(A100)
    place().parent.mkdir(parents=True)
    place().write_text(text)
    with held(place(), 0) as record:
        assert () == record.read()
