"""
NVIDIA's MPS control daemon: its start, its limits, its end.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from skyward import InstanceInfo, PluginError

__all__ = ["running"]

PROGRAM = "nvidia-cuda-mps-control"
PIDFILE = "nvidia-cuda-mps-control.pid"

TIMEOUT = 30.0
"""Seconds that a command has."""

PATIENCE = 15.0
"""Seconds in which the daemon has to be there, and later to be gone."""

LONGEST = 107 - len("/control_privileged")
"""Characters that its directory's path may have, for the names of its sockets to fit."""


@contextmanager
def running(info: InstanceInfo, percentage: float | None, memory_gb: float | None) -> Iterator[dict[str, str]]:
    """
    Run the daemon of this machine's GPUs, and return the variables by which programs find it.

    Args:
        info: The node.
        percentage: Share of a GPU's processors that a process may use; None for all.
        memory_gb: Memory of each GPU that a process may take, in GB; None for all.

    Raises:
        PluginError: If it does not start, or refuses a limit.
    """

    def failed(what: str, said: str = "", hint: str | None = None) -> PluginError:
        message = f"mps on node {info.node}: {what}{': ' if said.strip() else ''}{' '.join(said.split())}."
        return PluginError(message, plugin="mps", hook="around_app", hint=hint)

    with _directory() as base:
        variables = {"CUDA_MPS_PIPE_DIRECTORY": str(base / "p"), "CUDA_MPS_LOG_DIRECTORY": str(base / "l")}
        for path in variables.values():
            Path(path).mkdir(mode=0o700)
        env = {**os.environ, **variables}
        # A daemon that sees some GPUs numbers those again, and its clients' numbers would mean other GPUs.
        env.pop("CUDA_VISIBLE_DEVICES", None)
        try:
            code, said = _run([PROGRAM, "-d"], env)
        except OSError as error:
            raise failed(
                f"{PROGRAM} cannot be run: {error.strerror}",
                hint="It comes with NVIDIA's driver, sometimes in a package of its own.",
            ) from None
        try:
            if code or not _soon(lambda: _run([PROGRAM], env, "get_server_list")[0] == 0):
                raise failed(f"{PROGRAM} -d did not start", said or _logged(base))
            for command in _limits(percentage, memory_gb, env):
                code, said = _run([PROGRAM], env, command)
                if code:
                    raise failed(f"{PROGRAM} refused {command!r}", said)
            yield variables
        finally:
            _end(base / "p", env)


def _limits(percentage: float | None, memory_gb: float | None, env: Mapping[str, str]) -> Iterator[str]:
    """Write the commands that set limits for whatever asks the daemon for a GPU."""
    if percentage is not None:
        yield f"set_default_active_thread_percentage {percentage:g}"
    if memory_gb is not None:
        _, listed = _run(["nvidia-smi", "-L"], env)
        for device in range(sum(line.startswith("GPU ") for line in listed.splitlines())):
            yield f"set_default_device_pinned_mem_limit {device} {int(memory_gb * 1024)}M"


def _end(pipes: Path, env: Mapping[str, str]) -> None:
    """Order the daemon to quit, and end it if it does not."""
    pid = _number(pipes / PIDFILE)
    with suppress(OSError):
        _run([PROGRAM], env, "quit")
    if pid and not _soon(lambda: not _lives(pid)):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            # Its directory is removed next, and a process under load takes a moment to go.
            _soon(lambda: not _lives(pid))


@contextmanager
def _directory() -> Iterator[Path]:
    """Make a directory in the node's own, which is removed with it; elsewhere if its path is too long for sockets."""
    inside = Path.cwd() / ".mps"
    short = len(os.fsencode(inside / "p")) <= LONGEST
    path = inside if short else Path(tempfile.mkdtemp(prefix="mps-", dir="/tmp"))  # the shortest there is
    path.mkdir(mode=0o700, exist_ok=True)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _run(words: list[str], env: Mapping[str, str], command: str = "") -> tuple[int, str]:
    """Run a program, and return its exit code and what it printed."""
    # Into a file: a daemon may hold a pipe open.
    with tempfile.TemporaryFile("w+", errors="replace") as printed:
        try:
            done = subprocess.run(
                words,
                env=env,
                input=f"{command}\n",
                stdout=printed,
                stderr=printed,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
            code = done.returncode
        except subprocess.TimeoutExpired:
            code = -1
        printed.seek(0)
        return code, printed.read()


def _logged(base: Path) -> str:
    """Return the end of the daemon's own log."""
    try:
        return (base / "l" / "control.log").read_text(errors="replace")[-500:]
    except OSError:
        return ""


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return 0


def _lives(pid: int) -> bool:
    try:
        # It may not have been collected yet.
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def _soon(condition: Callable[[], bool]) -> bool:
    deadline, pause = time.monotonic() + PATIENCE, 0.02
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, 0.5)
    return True
