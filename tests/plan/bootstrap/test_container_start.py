"""What a container starts with: run as its first process, reached over SSH, left alone until it ends itself."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import asyncssh
import pytest

from skyward.model.instances.key_pair import KeyPair
from skyward.plan.bootstrap import container_start as module
from skyward.plan.bootstrap.container_start import END_COMMAND, ContainerStart, container_start
from skyward.plan.bootstrap.first_boot import HostKey, host_key
from skyward.rest import hidden
from tests.hosts import SSHD, ContainerHost
from tests.waiting import until

KEY = KeyPair()
HOST_KEY = host_key(KEY, "token/0")

needs_sshd = pytest.mark.skipif(not Path(SSHD).exists(), reason="no sshd")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Give a folder with a short name."""
    with tempfile.TemporaryDirectory(prefix="start", dir="/tmp") as name:
        yield Path(name, "c")


def started(folder: Path, start: ContainerStart, shell: Sequence[str] = ("sh",), **env: str) -> ContainerHost:
    """Start a container."""
    Path("/run/sshd").mkdir(exist_ok=True)
    host = ContainerHost(folder, "127.0.0.77", [*shell, "-c", start.script], {**start.env, **env})
    host.start()
    return host


async def logged_in(host: ContainerHost, command: str) -> str:
    """Return what a command prints there; the host has to prove itself by the key it was given."""
    known = asyncssh.import_known_hosts(f"[{host.address}]:{host.port} {HOST_KEY.public}\n")
    login = asyncssh.import_private_key(KEY.private)
    async with asyncio.timeout(15):
        while True:
            try:
                async with asyncssh.connect(
                    host.address, host.port, username="root", client_keys=[login], known_hosts=known, config=None
                ) as connection:
                    done = await connection.run(command)
                    return str(done.stdout)
            except OSError:
                await asyncio.sleep(0.05)


def made(end: str = "exit", ttl: float | None = None) -> ContainerStart:
    """Write a start."""
    return container_start(KEY.public, HOST_KEY, end=end, hidden=["THE_KEY"], ttl=ttl)


def test_it_fits_into_one_line_between_single_quotes_and_into_small_fields() -> None:
    """Some clouds take nothing else: 4096 characters for the command, 256 for a variable."""
    start = container_start(KEY.public, HOST_KEY, end="x" * 900, hidden=["A", "B"], ttl=600)
    assert set() == {"'", "\n"} & set(start.script)
    assert len(start.script) < 3000
    assert max(map(len, start.env.values())) <= 200
    assert HOST_KEY.private.splitlines()[1] not in repr(start)


def test_the_same_machine_is_told_the_same() -> None:
    """A launch that is sent again must not differ."""
    assert made() == made()
    assert made() != container_start(KEY.public, HostKey("x", HOST_KEY.private.replace("b3Bl", "b3Bm")), end="exit")


SHELLS = [["bash"], ["dash"], ["busybox", "sh"]]


@needs_sshd
@pytest.mark.parametrize("shell", [shell for shell in SHELLS if shutil.which(shell[0])], ids=" ".join)
def test_we_get_in_and_find_what_the_image_sets(folder: Path, shell: list[str]) -> None:
    """Its path and its variables, whatever is in them, but not the key, and nothing of ours."""
    host = started(folder, made(), shell, IMAGE_WORDS="a b # $HOME; c", NOTHING="", LINES="a\nb", THE_KEY="sk-scoped")
    try:
        lines = asyncio.run(logged_in(host, "env")).splitlines()
        assert "IMAGE_WORDS=a b # $HOME; c" in lines
        assert f"HOME={folder}/home" in lines
        assert [f"{folder}/bin"] == [line[5:].split(":")[0] for line in lines if line.startswith("PATH=")]
        assert [] == [line for line in lines if line.startswith(("SKYWARD_", "THE_KEY", "LINES"))]
        assert 0o700 == (folder / "home/.skyward").stat().st_mode & 0o777
        assert "022\n" in asyncio.run(logged_in(host, "umask"))
    finally:
        host.stop()
        host.sweep()


@needs_sshd
def test_its_end_is_run_from_within_with_the_key_that_nobody_else_sees(folder: Path) -> None:
    """The command of the facts finds what was written down at the start."""
    host = started(folder, made(end='echo "$THE_KEY" >"$HOME/ended"'), THE_KEY="sk-scoped")
    try:
        command = subprocess.list2cmdline(END_COMMAND[:2]) + f" '{END_COMMAND[2]}'"
        asyncio.run(logged_in(host, command))
        assert "sk-scoped\n" == (folder / "home/ended").read_text()
    finally:
        host.stop()
        host.sweep()


@needs_sshd
def test_an_end_that_fails_is_tried_again(folder: Path) -> None:
    """The cloud may be out of order for a while."""
    end = 'echo x >>"$HOME/tried"; [ "$(grep -c x "$HOME/tried")" = 3 ]'
    host = ContainerHost(folder, "127.0.0.77", ["sh", "-c", made(end=end).script], made(end=end).env)
    (folder / "bin/sleep").write_text("#!/bin/sh\n")
    (folder / "bin/sleep").chmod(0o755)
    host.start()
    try:
        asyncio.run(logged_in(host, f"{subprocess.list2cmdline(END_COMMAND[:2])} '{END_COMMAND[2]}'"))
        assert "x\nx\nx\n" == (folder / "home/tried").read_text()
    finally:
        host.stop()
        host.sweep()


@pytest.mark.slow
@needs_sshd
def test_it_ends_itself_when_nobody_makes_a_node_of_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The boot deadline needs no client and no SSH server."""
    monkeypatch.setattr(module, "LEAST_DEADLINE", 1.0)
    host = started(folder, made(end='echo x >>"$HOME/ended"', ttl=1))
    try:
        until((folder / "home/ended").exists)
    finally:
        host.stop()
        host.sweep()


@pytest.mark.slow
@needs_sshd
def test_it_leaves_its_end_to_the_watchdog_of_a_node(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a client has made a node of it, the deadline passes and nothing happens."""
    monkeypatch.setattr(module, "LEAST_DEADLINE", 1.0)
    host = ContainerHost(folder, "127.0.0.77", ["sh", "-c", made(end="x", ttl=1).script], made().env)
    watchdog = host.cache / "nodes" / "a-0" / "watchdog.pid"
    watchdog.parent.mkdir(parents=True)
    watchdog.touch()
    Path("/run/sshd").mkdir(exist_ok=True)
    host.start()
    try:
        asyncio.run(logged_in(host, "true"))
        # What waits for the deadline is a shell beside the server.
        until(lambda: not [pid for pid in host.processes() if _is_shell(pid)])
        assert "reached\n" == asyncio.run(logged_in(host, "echo reached"))
    finally:
        host.stop()
        host.sweep()


@needs_sshd
def test_it_starts_the_watchdogs_of_nodes_again(folder: Path) -> None:
    """When the container is started again: the numbers that are written down are those of other processes by now."""
    host = ContainerHost(folder, "127.0.0.77", ["sh", "-c", made(end="x", ttl=600).script], made().env)
    node = host.cache / "nodes" / "a-0"
    node.mkdir(parents=True)
    (node / "watchdog.sh").write_text('echo "$1" >"$HOME/watched"; exec sleep 300\n')
    (node / "watchdog.pid").write_text("1\n")
    Path("/run/sshd").mkdir(exist_ok=True)
    host.start()
    try:
        until((folder / "home/watched").exists)
        assert f"{node}\n" == (folder / "home/watched").read_text()
        until(lambda: int((node / "watchdog.pid").read_text()) in host.processes())
    finally:
        host.stop()
        host.sweep()


def _is_shell(pid: int) -> bool:
    """Tell whether a process is a shell that runs our script."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sh\0-c")
    except OSError:
        return False


@needs_sshd
def test_without_a_server_it_says_so_and_ends(folder: Path) -> None:
    """Where nothing can be installed, the first process ends with words for the log."""
    start = container_start(KEY.public, HOST_KEY, end="exit")
    script = start.script.replace("/usr/sbin/sshd", "/none/sshd").replace("command -v sshd", "command -v no-sshd")
    script = script.replace('sleep "$n"', "true")
    host = ContainerHost(folder, "127.0.0.77", ["sh", "-c", script], start.env)
    host.start()
    host.wait()
    assert "none can be installed" in (folder / "container.log").read_text()
    assert 5 == (folder / "asked").read_text().count("apt-get update")


@pytest.mark.parametrize(
    "spelled", [lambda env: env, lambda env: list(env.items()), json.dumps], ids=["object", "pairs", "text"]
)
def test_a_list_of_containers_that_is_shown_hides_the_host_key(spelled: Callable[[dict[str, str]], object]) -> None:
    """Clouds show a container's variables, and answers that cannot be read are shown in errors."""
    env = dict(made().env)
    shown = hidden(json.dumps({"env": spelled(env)}), [])
    assert "SKYWARD_START_KEY_0" in shown
    assert [] == [name for name, text in env.items() if name.startswith("SKYWARD_START_KEY_") and text in shown]
