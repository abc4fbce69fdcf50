"""Two clients that gave their pools the same id by chance do each other no harm."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

import skyward as sky
from tests.ssh.conftest import Site

ID = "0badcafe"


@sky.function
def mine(value: str) -> tuple[str, int]:
    print(f"line of {value}", flush=True)
    return value, os.getpid()


def _until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.everything
@pytest.mark.slow
def test_two_clients_with_one_pool_id(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets its own results and lines, and one that leaves, or is killed, leaves the other's node alone."""
    monkeypatch.setattr(importlib.import_module("skyward.pool"), "secrets", SimpleNamespace(token_hex=lambda count: ID))
    provider = site.provider()
    script = textwrap.dedent(f"""
        import importlib, sys
        from types import SimpleNamespace
        import skyward as sky
        importlib.import_module("skyward.pool").secrets = SimpleNamespace(token_hex=lambda count: {ID!r})
        provider = sky.SSH([{provider.hosts[0]!r}], key={str(site.key)!r}, known_hosts={str(site.known_hosts)!r})
        with sky.Compute(provider=provider, console="silent", logging=False, ttl=10) as pool:
            pool.on(sky.Log, lambda event: print("told", event.line, flush=True))
            while sys.stdin.readline():
                print(*(sky.function(lambda: __import__("os").getpid())() >> pool,), flush=True)
    """)
    lines: list[str] = []
    with sky.Compute(provider=provider, console="silent", logging=False, ttl=60) as pool:
        pool.on(sky.Log, lambda event: lines.append(event.line))
        first = mine("first") >> pool
        for ending in ("leave", "killed"):
            with subprocess.Popen(
                [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as other:
                assert other.stdin is not None
                assert other.stdout is not None
                print("go", file=other.stdin, flush=True)
                theirs = int(other.stdout.readline())
                assert theirs != first[1]
                assert len(list((site.hosts[0].cache / "nodes").iterdir())) == 2
                assert mine("again") >> pool == ("again", first[1])
                if ending == "killed":
                    other.kill()
            assert other.returncode == (0 if ending == "leave" else -9)
            _until(lambda theirs=theirs: theirs not in site.hosts[0].processes(), "the other's node is left")  # type: ignore[misc]
            assert mine("last") >> pool == ("last", first[1])
    assert lines == ["line of first", *["line of again", "line of last"] * 2]
    _until(lambda: not site.hosts[0].processes(), "processes are left")
