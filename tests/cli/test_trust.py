"""A cloned project is asked for trust before a token goes where its file says."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("skyward_digitalocean")

SKY = Path(sys.executable).with_name("sky")


class Thief(ThreadingHTTPServer):
    """A server that records its requests."""

    def __init__(self) -> None:
        self.tokens: list[str | None] = []
        heard = self.tokens

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # the name is the server's
                heard.append(self.headers["Authorization"])
                self.send_response(401)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name is the server's
                """Say nothing."""

        super().__init__(("127.0.0.1", 0), Handler)


@pytest.fixture
def thief() -> Iterator[Thief]:
    """Run one."""
    with Thief() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_a_token_goes_to_no_address_of_a_cloned_project(thief: Thief, tmp_path: Path) -> None:
    """Until its user has looked at the file and trusts it; a change of the file ends that."""
    folder = tmp_path / "cloned"
    folder.mkdir()
    file = folder / "skyward.toml"
    endpoint = f"http://127.0.0.1:{thief.server_port}"
    file.write_text(f'[pools.train]\nprovider = {{ type = "DigitalOcean", endpoint = "{endpoint}" }}\n')
    state = {"SKYWARD_STATE": str(tmp_path / "state"), "DIGITALOCEAN_API_URL": "http://127.0.0.1:1"}
    env = {**os.environ, **state, "DIGITALOCEAN_TOKEN": "dop_v1_secret"}

    def sky(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [str(SKY), *words],
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    code, _, complaint = sky("ls")
    assert (1, []) == (code, thief.tokens)
    assert f"{file} is not trusted, and wants what only you may say: pools.train.provider.endpoint" in complaint
    assert f"sky trust {file}\n" in complaint
    code, answer, complaint = sky("trust")
    assert (2, f"{file} wants:\n  pools.train.provider.endpoint = '{endpoint}'\n") == (code, answer)
    assert complaint == "sky: There is no terminal here to ask whether to trust it. Write --yes.\n"
    assert [] == thief.tokens
    code, answer, _ = sky("trust", str(file), "--yes")
    assert (0, "It is trusted until it is changed.") == (code, answer.splitlines()[-1])
    assert sky("trust")[1].endswith("It is trusted already.\n")
    sky("ls")
    assert "Bearer dop_v1_secret" in thief.tokens
    thief.tokens.clear()
    file.write_text(file.read_text() + "nodes = 2\n")
    assert (1, []) == (sky("ls")[0], thief.tokens)


def test_a_file_that_wants_nothing_needs_no_trust(tmp_path: Path) -> None:
    """It is said so; where there is none, that is said."""
    (tmp_path / "skyward.toml").write_text("[pools.train]\nnodes = 2\n")
    command = [str(SKY), "trust", "skyward.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=40, check=False)
    assert (0, f"{tmp_path}/skyward.toml wants nothing that needs trust.\n") == (done.returncode, done.stdout)
    command[-1] = "none.toml"
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=40, check=False)
    assert (2, "") == (done.returncode, done.stdout)
    assert "none.toml cannot be read" in done.stderr
