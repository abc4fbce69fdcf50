"""A shell, commands, files and ports of the nodes of pools that are open in another program, or detached."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import skyward as sky
from skyward.cli.commands.cp import Remote, place_of
from skyward.cli.commands.forward import ports
from skyward.cli.node_access import split_node
from skyward.errors import UsageError
from tests.hosts import SSHD, Host, hosts

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(90),
    pytest.mark.skipif(not Path(SSHD).exists(), reason="needs an OpenSSH server"),
]

SKY = Path(sys.executable).with_name("sky")
Typed = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[Host], dict[str, str]]]:
    """Open a pool of two hosts, and return the variables by which other programs find it."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch, hosts(2) as (made, key):
        patch.setenv("SKYWARD_STATE", str(folder))
        names = [f"{host.address}:{host.port}" for host in made]
        provider = sky.SSH(names, key=str(key), known_hosts=str(folder / "known"))
        with sky.Compute(provider=provider, nodes=2, label="box", ttl=60, console="silent", logging=False):
            yield made, {**os.environ, "SKYWARD_STATE": str(folder)}


@pytest.fixture
def typed(opened: tuple[list[Host], dict[str, str]], tmp_path: Path) -> Typed:
    """Return a function that types something, with what it reads."""

    def type_it(*words: str, data: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [str(SKY), *words],
            cwd=tmp_path,
            env=opened[1],
            input=data,
            capture_output=True,
            timeout=60,
            check=False,
        )

    return type_it


def test_a_command_runs_with_the_streams_that_are_here(typed: Typed, opened: tuple[list[Host], dict[str, str]]) -> None:
    """Its output, its complaints and its exit code are its own; words reach it as they are typed."""
    done = typed("exec", "box", "--", "sh", "-c", "cat; echo oh >&2; exit 7", data=b"\x00\xffbytes")
    assert (7, b"\x00\xffbytes", b"oh") == (done.returncode, done.stdout, done.stderr.splitlines()[-1])
    assert b"a  $HOME 'b'\n" == typed("exec", "box", "--", "echo", "a  $HOME 'b'").stdout
    homes = [typed("exec", f"box:{node}", "--", "pwd").stdout.decode().strip() for node in (0, 1)]
    assert [str(host.base / "home") for host in opened[0]] == homes


def test_a_shell_reads_what_is_piped_into_it(typed: Typed) -> None:
    """Without a terminal there is none at the other end."""
    done = typed("ssh", "box", data=b"tty || true\nexit 3\n")
    assert 3 == done.returncode
    assert b"not a tty\n" in done.stdout


def test_a_shell_on_a_terminal_has_one(opened: tuple[list[Host], dict[str, str]]) -> None:
    """And what was typed before it was there is not lost."""
    here, there = pty.openpty()
    with subprocess.Popen([str(SKY), "ssh", "box"], stdin=there, stdout=subprocess.PIPE, env=opened[1]) as running:
        os.close(there)
        os.write(here, b"tty; exit 5\n")
        try:
            shown = running.communicate(timeout=60)[0]
        finally:
            running.kill()
    assert 5 == running.returncode
    os.close(here)
    assert b"/dev/pts/" in shown


def test_files_are_copied_both_ways(typed: Typed, opened: tuple[list[Host], dict[str, str]], tmp_path: Path) -> None:
    """Under a new name, or into a folder that is there; folders with all that is in them."""
    home = opened[0][1].base / "home"
    (tmp_path / "data" / "deep").mkdir(parents=True)
    (tmp_path / "data" / "deep" / "a b").write_bytes(b"x" * 300_000)
    (tmp_path / "data" / "run").write_text("#!/bin/sh")
    (tmp_path / "data" / "run").chmod(0o755)
    done = typed("cp", "data", "box:1:new/place")
    assert (0, b"") == (done.returncode, done.stdout), done.stderr
    assert b"x" * 300_000 == (home / "new" / "place" / "deep" / "a b").read_bytes()
    assert os.access(home / "new" / "place" / "run", os.X_OK)
    assert 0 == typed("cp", "data/run", "box:1:new/").returncode
    assert (home / "new" / "run").exists()
    assert 0 == typed("cp", "box:1:new/place", "back").returncode
    assert b"x" * 300_000 == (tmp_path / "back" / "deep" / "a b").read_bytes()
    assert 0 == typed("cp", "box:1:new/run", ".").returncode
    assert "#!/bin/sh" == (tmp_path / "run").read_text()


def test_what_cannot_be_copied_is_named(typed: Typed) -> None:
    """On either side."""
    done = typed("cp", "nothing", "box:there")
    assert (2, b"sky: There is no file 'nothing' here.") == (done.returncode, done.stderr.splitlines()[-1])
    done = typed("cp", "box:nothing", "here")
    assert 1 == done.returncode
    assert b"nothing of Node 0 of pool 'box' could not be copied" in done.stderr
    assert 2 == typed("cp", "one", "other").returncode


class Page(BaseHTTPRequestHandler):
    """Answer every request."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def test_a_port_is_reached_here(opened: tuple[list[Host], dict[str, str]]) -> None:
    """Until the program is interrupted."""
    server = HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with subprocess.Popen(
        [str(SKY), "forward", "box", f"{server.server_port}:0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=opened[1],
    ) as running:
        assert running.stdout is not None
        url = next(word for word in running.stdout.readline().split() if word.startswith("http"))
        with urllib.request.urlopen(url, timeout=20) as page:
            assert b"hello" == page.read()
        running.send_signal(signal.SIGINT)
        answer, complaint = running.communicate(timeout=20)
        assert ("", "sky: interrupted.") == (answer, complaint.splitlines()[-1])
    assert 130 == running.returncode
    server.shutdown()
    server.server_close()


def test_a_port_that_is_taken(typed: Typed) -> None:
    """Another one may be given."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = typed("forward", "box", f"80:{taken.getsockname()[1]}")
    assert 2 == done.returncode
    assert b"80:0 for any that is free" in done.stderr


def test_a_pool_or_a_node_that_is_not_there(typed: Typed) -> None:
    """The nearest pool is offered, and the nodes that there are."""
    done = typed("exec", "bxo", "--", "true")
    assert 1 == done.returncode
    assert b"Did you mean 'box'?" in done.stderr
    done = typed("exec", "box:7", "--", "true")
    assert 1 == done.returncode
    assert b"node from 0 to 1" in done.stderr
    assert 2 == typed("exec", "box").returncode
    assert 2 == typed("exec", "box:x", "--", "true").returncode


def test_a_node_that_is_a_process_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no other machine to log in to."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    with sky.Compute(label="here", console="silent"):
        done = subprocess.run([str(SKY), "ssh", "here"], capture_output=True, text=True, timeout=40, check=False)
    assert 2 == done.returncode
    assert "Node 0 of pool 'here' is a process of this machine." in done.stderr


def test_a_detached_pool_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without attaching it."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    with hosts(1) as ((host,), key):
        provider = sky.SSH([f"{host.address}:{host.port}"], key=str(key), known_hosts=str(tmp_path / "known"))
        options = {"console": "silent", "logging": False}
        with sky.Compute(provider=provider, label="left", ttl=60, **options) as pool:  # type: ignore[arg-type]
            pool.detach()
        done = subprocess.run(
            [str(SKY), "exec", "left", "--", "echo", "there"], capture_output=True, text=True, timeout=40, check=False
        )
        assert (0, "there\n") == (done.returncode, done.stdout), done.stderr
        with sky.attach("left", **options):  # type: ignore[arg-type]
            pass


@pytest.mark.parametrize("text", [":1", "train:x", "train:", "train:-1"])
def test_what_names_no_node(text: str) -> None:
    """How it is written is said."""
    with pytest.raises(UsageError, match="names no node"):
        split_node(text)


@pytest.mark.parametrize("text", ["x", "0", "70000", "1:2:3", "80:"])
def test_what_is_no_port(text: str) -> None:
    """How it is written is said."""
    with pytest.raises(UsageError, match="is no port"):
        ports(text)


def test_paths_of_nodes_and_of_this_machine() -> None:
    """A path with a slash before its colon is one of this machine."""
    assert Remote("train", None, ".") == place_of("train:")
    assert Remote("train", 2, "~/x:y") == place_of("train:2:~/x:y")
    assert "/a:b" == place_of("/a:b")
    assert "data" == place_of("data")
