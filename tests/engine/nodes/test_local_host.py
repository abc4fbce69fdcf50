"""A node on this machine starts in a directory that no other user can have made or filled."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from skyward.engine.nodes.local_host import LocalHost
from skyward.errors import ConfigError, ProvisionError
from tests.strangers import give_away


async def _prepare() -> Any:
    raise AssertionError


@contextmanager
def host(directory: Path) -> Iterator[LocalHost]:
    """Give a host, and end it."""
    one = LocalHost(None, directory, "mark", env=dict(os.environ), prepare=_prepare)  # type: ignore[arg-type]
    try:
        yield one
    finally:
        one._end(0.0)


def test_a_planted_directory_is_refused(tmp_path: Path) -> None:
    """What lies in `files` would be imported by the workers; the agent refuses it as well, and says the same."""
    node = tmp_path / "node-0"
    (node / "files").mkdir(parents=True)
    (node / "files" / "numpy.py").write_text("raise SystemExit('planted')")
    give_away(node)
    with host(node) as one:
        with pytest.raises(ConfigError, match=rf"{node} is not used, because it"):
            one.start()
        assert one._process is not None
        assert 1 == one._process.wait(40)
        assert "is not used, because it" in one.last_words()
    assert (node / "files" / "numpy.py").exists() == (os.geteuid() == 0)


def test_the_directory_is_not_named_where_others_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every user of the machine reads the command line of an agent; before the agent lives, there is no directory."""
    seen: list[tuple[bool, bool]] = []
    real = subprocess.Popen

    def popen(argv: list[str], **more: Any) -> Any:
        seen.append((str(tmp_path) in " ".join(argv), (tmp_path / "pool").exists()))
        return real(argv, **more)

    monkeypatch.setattr(subprocess, "Popen", popen)
    before = os.umask(0)
    try:
        with host(tmp_path / "pool" / "node-0") as one:
            one.start().close()
            assert 0o700 == (tmp_path / "pool").stat().st_mode & 0o777
    finally:
        os.umask(before)
    assert [(False, False)] == seen


def test_an_agent_whose_client_dies_before_it_greets_removes_the_directory(tmp_path: Path) -> None:
    """And the pool's, which holds no other node."""
    pool = tmp_path / "skyward-pool"
    with host(pool / "node-0") as one:
        one.start().close()
        assert one._process is not None
        assert 0 == one._process.wait(40)
        assert not pool.exists()


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """Such as one of a machine that was taken back."""
    (tmp_path / "node-0").touch()
    wrong = f"The directory {tmp_path}/node-0 could not be made"
    with host(tmp_path / "node-0") as one, pytest.raises(ProvisionError, match=wrong):
        one.start()


@pytest.mark.parametrize("planted", [".", "files"])
def test_an_agent_looks_itself(tmp_path: Path, planted: str) -> None:
    """One that is started on another machine does not serve in a directory that others could fill."""
    node = tmp_path / "node-0"
    (node / "files").mkdir(parents=True)
    give_away(node / planted)
    command = [sys.executable, "-P", "-m", "skyward.node.agent.agent_main", "--listen", str(node), "session"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    assert 1 == done.returncode
    assert "is not used, because it" in done.stderr
    assert not (node / "agent.sock").exists()
