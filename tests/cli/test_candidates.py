"""What can be typed next, as shells ask for it and complete it."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import skyward as sky
from skyward.cli.candidates import FILES, candidates
from skyward.cli.completion_scripts import SCRIPTS

BIN = Path(sys.executable).parent

# Shells want the terminal to be that of their session.
_OWN_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execvp(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep Skyward's state in a directory of the test's, where no pool is known."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(*typed: str) -> list[str]:
    """Return what may stand in the place of the last word."""
    return [word for word, _ in candidates(typed)]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (("provi",), ["providers"]),
        (("help", "deta"), ["detached"]),
        (("help", "ls", ""), []),
        (("--v",), ["--version"]),
        (("nothing", ""), []),
        (("ls", "--exp"), ["--expired"]),
        (("providers", "ch"), ["check"]),
        (("providers", "check", "loc"), ["local"]),
        (("ls", "--provider", "ss"), ["ssh"]),
        (("ls", "--provider=ss"), ["--provider=ssh"]),
        (("offers", "--gpu", "H100"), ["H100"]),
        (("completion", ""), ["bash", "fish", "zsh"]),
        (("trust", ""), [FILES[0]]),
        (("run", "--pool", "train", "script.py", ""), [FILES[0]]),
        (("exec", "train", "--", ""), [FILES[0]]),
    ],
)
def test_what_is_offered(typed: tuple[str, ...], offered: list[str]) -> None:
    """Commands, options, choices, providers and GPUs; files are left to the shell."""
    assert offered == words(*typed)


def test_options_come_when_a_hyphen_is_typed() -> None:
    """And are not between the names."""
    assert [] == [word for word in words("ls", "") if word.startswith("-")]
    assert {"--json", "--provider", "--expired"} <= set(words("ls", "-"))


def test_pools_of_the_nearest_file_are_offered(state: Path) -> None:
    """Whether the file is trusted or not: their names do nothing. One that is no TOML has none."""
    (state / "skyward.toml").write_text("[pools.train]\n[pools.sweep]\n")
    assert ["sweep", "train"] == words("down", "")
    assert ["train"] == words("run", "--pool", "t")
    (state / "skyward.toml").write_text("[pools")
    assert [] == words("down", "")


@pytest.mark.slow
def test_open_pools_and_their_nodes_are_offered() -> None:
    """The nodes behind a colon."""
    with sky.Compute(label="warm", console="silent"):
        assert ["warm"] == words("ssh", "w")
        assert ["warm:0"] == words("ssh", "warm:")


@pytest.mark.slow
def test_completing_loads_no_distribution() -> None:
    """A shell waits for it at each press of a key."""
    done = subprocess.run(
        [str(BIN / "sky"), "__complete", "ls", "--provider", ""],
        env={**os.environ, "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=40,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "skyward.cli.candidates" in loaded
    assert set() == {name for name in loaded if name.startswith("skyward_")} | loaded & {
        "asyncio",
        "asyncssh",
        "rich",
        "pluggy",
    }
    assert "local\t" in done.stdout


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(sky completion bash)\n"),
    "zsh": (["zsh", "-f", "-i"], "source <(sky completion zsh)\n"),
    "fish": (["fish", "--no-config", "-i"], "sky completion fish | source\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("shell", sorted(SHELLS))
def test_a_fresh_shell_completes(shell: str, state: Path) -> None:
    """By its own keys, in a terminal: a command, and the name of a pool, behind an equals sign too."""
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    (state / "skyward.toml").write_text("[pools.nightly]\n")
    command, source = SHELLS[shell]
    for typed, completed in (("sky provi\t", "sky providers"), ("sky run --pool nig\t", "--pool nightly")):
        assert completed in _on_a_terminal(command, [source, typed], completed, state)


def _on_a_terminal(command: list[str], typed: list[str], wanted: str, folder: Path) -> str:
    """Type into a shell on a terminal of its own, until something is shown."""
    here, there = pty.openpty()
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "TERM": "xterm", "HOME": str(folder), "PS1": "> "}
    with subprocess.Popen(
        [sys.executable, "-c", _OWN_TERMINAL, *command],
        stdin=there,
        stdout=there,
        stderr=there,
        cwd=folder,
        env=env,
        start_new_session=True,
    ) as running:
        os.close(there)
        try:
            shown = ""
            for text in typed:
                # What is typed before the prompt is there would be shown by the terminal, and not completed.
                shown += _read(here, time.monotonic() + 20.0, lambda said: "> " in said or "# " in said)
                os.write(here, text.encode())
            return shown + _read(here, time.monotonic() + 20.0, lambda said: wanted in said)
        finally:
            running.kill()
            os.close(here)


def _read(terminal: int, deadline: float, enough: Callable[[str], bool]) -> str:
    shown = ""
    while time.monotonic() < deadline and not enough(shown):
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 65536).decode("utf-8", "replace")
            except OSError:
                break
    return shown


def test_each_script_asks_the_program() -> None:
    """And says how it is had in every shell."""
    assert {"bash", "fish", "zsh"} == SCRIPTS.keys()
    for shell, script in SCRIPTS.items():
        assert "__complete" in script
        assert f"sky completion {shell}" in script
