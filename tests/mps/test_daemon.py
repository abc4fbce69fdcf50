"""The daemon of a node is there for its workers, and gone with it; tests/nvidia says what stands in for NVIDIA's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from skyward_mps.daemon import running
from tests.nvidia.machine import Gpus

pytestmark = pytest.mark.slow

A100 = "A100-SXM4-80GB"
Give = Callable[..., Gpus]
QUIET: dict[str, Any] = {"console": "silent", "logging": False}


def ask(command: str) -> str:
    """Ask the daemon, as any program on the node may."""
    words = ["nvidia-cuda-mps-control"]
    return subprocess.run(words, input=command + "\n", capture_output=True, text=True, check=False).stdout


def daemons(gpus: Gpus) -> list[int]:
    """List the daemons that run."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[-3:] == [os.fsencode(gpus.kept), b"-d", b""]:
            found.append(int(path.parent.name))
    return found


def test_workers_find_a_daemon_of_their_own_with_its_limits(here: Give) -> None:
    """All ranks the same one; its directories are gone afterwards, and it was told to quit."""
    gpus = here(A100, A100)

    def look() -> tuple[str, str, str, list[str]]:
        place = os.environ["CUDA_MPS_PIPE_DIRECTORY"]
        assert Path(os.environ["CUDA_MPS_LOG_DIRECTORY"], "control.log").exists()
        limits = [ask(f"get_default_device_pinned_mem_limit {device}") for device in range(3)]
        return place, ask("get_default_active_thread_percentage"), ask("get_server_list"), limits

    plugin = sky.plugins.mps(active_thread_percentage=12.5, pinned_memory_limit="1.5GB")
    with sky.Compute(per_node=2, plugins=[plugin], **QUIET) as pool:
        first, second = sky.function(look)() @ pool
        assert first == second
        place, *limits = first
        assert ["12.5\n", "", ["1536M\n", "1536M\n", "\n"]] == limits
        assert 1 == len(daemons(gpus))
    assert "quit" == gpus.daemon[-1]
    assert [] == daemons(gpus)
    assert not Path(place).exists()


def test_nothing_is_limited_that_nobody_asked_to(here: Give) -> None:
    """The daemon's own settings hold."""
    gpus = here(A100)
    with within():
        pass
    assert ["-d", "quit"] == [line.split()[0] for line in gpus.daemon]


def test_the_daemon_numbers_all_gpus_as_the_machine_does(here: Give, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would number those anew that it is shown, and workers be refused that are shown the same."""
    gpus = here(A100, A100)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with sky.Compute(plugins=[sky.plugins.mps()], **QUIET) as pool:
        assert "1" == sky.function(os.environ.get)("CUDA_VISIBLE_DEVICES") >> pool
    assert "-d CUDA_VISIBLE_DEVICES=" == gpus.daemon[0]


def within(percentage: float | None = None, memory_gb: float | None = None) -> AbstractContextManager[dict[str, str]]:
    """Have the daemon as a node has, whose plugin says so."""
    return running(sky.InstanceInfo(), percentage, memory_gb)


@pytest.fixture(autouse=True)
def _in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    base = tempfile.mkdtemp(prefix="mps", dir="/tmp")
    monkeypatch.chdir(base)
    yield
    monkeypatch.undo()
    # Nothing is left in it.
    os.rmdir(base)


def test_directory_whose_path_is_too_long_for_sockets(
    here: Give, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one is taken, and goes as well."""
    here(A100)
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.chdir(deep)
    with within() as variables:
        place = Path(variables["CUDA_MPS_PIPE_DIRECTORY"])
        assert deep not in place.parents
        assert place.joinpath("control").is_socket()
    assert not place.parent.exists()


def test_machine_without_the_program(here: Give) -> None:
    """It says where it comes from, and the pool is not opened."""
    here(A100, without="nvidia-cuda-mps-control")
    message = "mps on node 0: nvidia-cuda-mps-control cannot be run: No such file.*It comes with NVIDIA's driver"
    with pytest.raises(sky.PluginError, match=message), sky.Compute(plugins=[sky.plugins.mps()], **QUIET):
        raise AssertionError


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("echo An instance of this daemon is already running; exit 1", "-d did not start: An instance of this daemon"),
        (
            '[ "$1" = -d ] || { read c; [ $c = get_server_list ] || { echo no such thing; exit 1; }; }',
            "refused 'set_def",
        ),
    ],
)
def test_daemon_that_refuses(here: Give, tmp_path: Path, body: str, message: str) -> None:
    """What it said is in the error."""
    here(A100)
    (tmp_path / "bin" / "nvidia-cuda-mps-control").write_text(f"#!/bin/sh\n{body}\n")
    with pytest.raises(sky.PluginError, match=message), within(percentage=50):
        raise AssertionError


def test_daemon_that_does_not_quit_is_ended(here: Give) -> None:
    """By its number, which it has written down."""
    gpus = here(A100)
    with within():
        (daemon,) = daemons(gpus)
        os.kill(daemon, signal.SIGSTOP)
        # Its answer would be waited for, so nothing is to ask.
        path = Path(os.environ["PATH"].split(":")[0]) / "nvidia-cuda-mps-control"
        path.write_text("#!/bin/sh\nexit 1\n")
    assert [] == daemons(gpus)


PROGRAM = """
import os, time
import skyward as sky

if __name__ == "__main__":
    with sky.Compute(plugins=[sky.plugins.mps()], console="silent", logging=False) as pool:
        print(sky.function(os.getppid)() >> pool, flush=True)
        time.sleep(300)
"""


@pytest.mark.parametrize("victim", ["client", "agent"])
def test_daemon_ends_whoever_is_killed(here: Give, tmp_path: Path, victim: str) -> None:
    """It belongs to its node, as all that its workers start."""
    gpus = here(A100)
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(PROGRAM))
    client = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout is not None
        agent = int(client.stdout.readline())
        before = daemons(gpus)
        assert 1 == len(before)
        os.kill(client.pid if victim == "client" else agent, signal.SIGKILL)
        deadline = time.monotonic() + 45
        while set(before) & set(daemons(gpus)):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        client.kill()
        client.communicate()
    deadline = time.monotonic() + 45
    while daemons(gpus):
        assert time.monotonic() < deadline
        time.sleep(0.05)
