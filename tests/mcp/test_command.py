"""The command: what it refuses, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mcp.desk import Desk
from tests.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SERVER = Path(sys.executable).with_name("skyward-mcp")


def typed(desk: Desk, *words: str) -> tuple[int, str]:
    """Type something, and give its exit code and complaint."""
    done = subprocess.run(
        [str(SERVER), *words],
        env=desk.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "" == done.stdout
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ((), "the following arguments are required: --budget"),
        (("--budget", "much"), "'much' is no number above 0"),
        (("--budget", "inf"), "'inf' is no number above 0"),
        (("--budget", "-1"), "'-1' is no number above 0"),
        (("--budget", "1", "--provider", "awz"), "There is no provider 'awz'. Did you mean 'AWS'?"),
    ],
)
def test_what_was_typed_wrongly_is_refused(desk: Desk, words: tuple[str, ...], complaint: str) -> None:
    """Before anything is answered, and nothing is printed where messages are."""
    code, said = typed(desk, *words)
    assert (2, True) == (code, complaint in said), said


def test_it_ends_with_its_input(desk: Desk) -> None:
    """Without a pool at once, and with 0."""
    assert (0, "") == typed(desk, "--budget", "1")


def test_a_signal_ends_all_pools(desk: Desk) -> None:
    """SIGTERM, twice and also to a server whose input stays open; then it exits."""
    with subprocess.Popen(
        [str(SERVER), "--budget", "1"], env=desk.env, cwd=desk.folder, stdin=-1, stdout=-1, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def ask(method: str, parameters: object, number: int | None) -> None:
            assert server.stdin is not None
            identity = {} if number is None else {"id": number}
            message = {"jsonrpc": "2.0", **identity, "method": method, "params": parameters}
            server.stdin.write(json.dumps(message) + "\n")
            server.stdin.flush()

        client = {"name": "test", "version": "1"}
        ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}, 1)
        assert 1 == json.loads(server.stdout.readline())["id"]
        ask("notifications/initialized", {}, None)
        order = {"provider": "rehearsal", "machine": "small", "keep": True}
        ask("tools/call", {"name": "start", "arguments": order}, 2)
        assert "opening" in server.stdout.readline()
        until(desk.cloud.machines, 60, what="a machine is rented")
        os.kill(server.pid, signal.SIGTERM)
        os.kill(server.pid, signal.SIGTERM)
        server.wait(60)
        until(lambda: not desk.cloud.machines(), 60, what="the machine is terminated")
