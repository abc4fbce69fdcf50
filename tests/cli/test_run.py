"""A script is run on a pool's head node, left there, and gone on with."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.hosts import hosts

pytestmark = pytest.mark.timeout(120)

SKY = Path(sys.executable).with_name("sky")
Typed = Callable[..., "subprocess.CompletedProcess[str]"]

SCRIPT = """
import pathlib, sys, time
print("begins with", sys.argv[1:], flush=True)
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.02)
print("ends", flush=True)
sys.exit(3)
"""


@pytest.fixture
def typed(tmp_path: Path) -> Iterator[Typed]:
    """Return a function that types something where a skyward.toml names a host."""
    with hosts(1) as ((host,), key):
        (tmp_path / "skyward.toml").write_text(
            f'[pools.box]\nprovider = {{ type = "SSH", hosts = ["{host.address}:{host.port}"], key = "{key}", '
            f'known_hosts = "{tmp_path / "known"}" }}\nttl = 60\nconsole = "minimal"\n'
        )
        (tmp_path / "script.py").write_text(SCRIPT)
        variables = {**os.environ, "SKYWARD_STATE": str(tmp_path / "state"), "HOME": str(tmp_path)}

        def type_it(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [str(SKY), *words],
                cwd=tmp_path,
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )

        type_it.interrupted = lambda *words: _interrupted(words, tmp_path, variables)  # type: ignore[attr-defined]
        yield type_it


def _interrupted(words: tuple[str, ...], folder: Path, variables: dict[str, str]) -> tuple[int, str]:
    """Type something, and interrupt it as soon as the script's line is shown; return its exit code and complaint."""
    command = subprocess.Popen(
        [str(SKY), *words],
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert command.stdout is not None
    shown = ""
    while "begins with" not in shown:
        shown += command.stdout.readline()
    command.send_signal(signal.SIGINT)
    shown += command.communicate(timeout=60)[0]
    return command.returncode, shown


def test_a_script_is_left_and_gone_on_with(typed: Typed, tmp_path: Path) -> None:
    """Its lines, its exit code and its end are those of the command that attaches it."""
    gate = tmp_path / "gate"
    left = typed("run", "--detach", "--pool", "box", "--lease", "90", "script.py", str(gate), "--epochs", "3")
    assert left.returncode == 0, left.stderr
    name = left.stdout.strip()
    assert re.fullmatch("[0-9a-f]{8}", name)
    listed = typed("detached").stdout.splitlines()
    assert listed[0].split()[:5] == ["POOL", "ID", "PROVIDER", "MACHINES", "CALLS"]
    assert [line.split()[:5] for line in listed[1:]] == [["box", name, "ssh", "1", "1"]]
    gate.touch()
    time.sleep(0.5)  # it ends without a client, or not: the same is shown
    done = typed("attach", "box")
    assert done.returncode == 3, done.stderr
    assert f"begins with ['{gate}', '--epochs', '3']" in done.stdout + done.stderr
    assert "ends" in done.stdout + done.stderr
    assert typed("detached").stdout == "No pool is detached.\n"
    again = typed("attach", "box")
    assert (again.returncode, "No pool 'box' is detached" in again.stderr) == (1, True)


def test_a_script_is_run_to_its_end(typed: Typed, tmp_path: Path) -> None:
    """Its exit code is that of the command; what makes no sense is refused before anything is opened."""
    gate = tmp_path / "gate"
    gate.touch()
    assert typed("run", "--pool", "box", "script.py", str(gate)).returncode == 3
    missing = typed("run", "--pool", "box", "none.py")
    assert missing.returncode == 2
    assert missing.stderr == "sky: The script none.py cannot be read: No such file or directory.\n"
    assert typed("run", "--pool", "box", "--lease", "9", "script.py").returncode == 2


def test_a_script_has_the_variables_that_are_named_and_no_others(typed: Typed, tmp_path: Path) -> None:
    """With the values that they have here, or are written; one that is not there is refused before a pool is opened."""
    names = ("SKYWARD_STATE", "GIVEN", "HOME")
    (tmp_path / "script.py").write_text(f"import os\nprint([os.environ.get(name) for name in {names}])\n")
    done = typed("run", "--pool", "box", "--env", "SKYWARD_STATE", "--env", "GIVEN=a=b", "script.py")
    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr
    assert f"['{tmp_path / 'state'}', 'a=b', " in shown
    assert f"'{tmp_path}']" not in shown, "the host has a home of its own"
    missing = typed("run", "--pool", "box", "--env", "NO_SUCH_KEY", "script.py")
    assert missing.returncode == 2
    assert missing.stderr.startswith("sky: --env NO_SUCH_KEY: this program has no such variable.")


def test_an_interrupt_leaves_a_script_that_was_attached(typed: Typed, tmp_path: Path) -> None:
    """It goes on, and what it prints and gives is there for the next one."""
    gate = tmp_path / "gate"
    left = typed("run", "--detach", "--pool", "box", "--lease", "90", "script.py", str(gate))
    code, shown = typed.interrupted("attach", "box")  # type: ignore[attr-defined]
    assert code == 130, shown
    # By its name, if the interrupt came while it was still being entered.
    assert re.search(f"To go on with it: sky attach ({left.stdout.strip()}|box)", shown)
    gate.touch()
    done = typed("attach", "box")
    assert done.returncode == 3, done.stderr
    assert "ends" in done.stdout + done.stderr


def test_a_pool_that_was_left_on_own_machines_is_ended(typed: Typed, tmp_path: Path) -> None:
    """No cloud lists it: `sky down` is a client that attaches it, and does not wait for its calls."""
    left = typed("run", "--detach", "--pool", "box", "--lease", "90", "script.py", str(tmp_path / "never"))
    asked = typed("down", "box")
    assert (asked.returncode, "Write --yes" in asked.stderr) == (2, True)
    ended = typed("down", "box", "--yes")
    assert ended.returncode == 0, ended.stderr
    assert f"box ({left.stdout.strip()}): 1 calls on " in ended.stdout
    assert typed("detached").stdout == "No pool is detached.\n"
    node = [path for path in Path("/proc").glob("[0-9]*/environ") if left.stdout.strip().encode() in _read(path)]
    assert not node


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
