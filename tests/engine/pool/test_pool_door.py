"""The door of an open pool: other programs ask there, and whatever else connects does no harm."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from skyward.engine.pool.pool_door import _short, ask_pools


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep Skyward's state in a directory of the test's."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    return tmp_path / "pools"


@pytest.fixture
def pool(state: Path) -> Iterator[sky.Pool]:
    """Open a pool whose door is there."""
    with sky.Compute(console="silent") as opened:
        yield opened


def test_pools_answer_to_their_names(pool: sky.Pool, state: Path) -> None:
    """One of another name says nothing; a node that is not there is refused in words."""
    assert ["node 0, rank 0"] == [text[:14] for text in ask_pools(None, None).values()]
    assert 1 == len(ask_pools(pool.name, 0))
    assert {} == ask_pools("another", None)
    assert ["node must be"] == [text[:12] for text in ask_pools(None, 9).values()]
    assert 0o700 == stat.S_IMODE(state.stat().st_mode)


@pytest.mark.parametrize(
    "question", [b"", b"\n", b"[]\n", b'{"pool": 1}\n', b'{"pool": null, "node": {}}\n', b"x" * 9000]
)
def test_what_is_no_question_does_no_harm(pool: sky.Pool, state: Path, question: bytes) -> None:
    """The pool answers the next one."""
    [path] = state.glob("*.sock")
    with socket.socket(socket.AF_UNIX) as sock, _short(path) as short:
        sock.connect(short)
        sock.sendall(question)
        sock.shutdown(socket.SHUT_WR)
        sock.settimeout(20)
        while sock.recv(1 << 16):
            pass
    assert 1 == len(ask_pools(None, None))


def test_the_door_goes_with_the_pool(state: Path) -> None:
    """And what a killed program left is removed by whatever asks next."""
    with sky.Compute(console="silent"):
        assert 1 == len([*state.glob("*.sock")])
    assert [] == [*state.glob("*.sock")]
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(state / "left.sock"))
    assert {} == ask_pools(None, None)
    assert [] == [*state.glob("*.sock")]


def test_where_no_door_can_be_made_the_pool_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as where the directory for state is a file."""
    (tmp_path / "state").touch()
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path / "state"))
    with sky.Compute(console="silent") as opened:
        assert 3 == sky.function(lambda: 3)() >> opened
        assert {} == ask_pools(None, None)
