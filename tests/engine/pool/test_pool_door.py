"""The door of an open pool: other programs ask there, and whatever else connects does no harm."""

from __future__ import annotations

import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import skyward as sky
from skyward.engine.pool.asked_pools import ask_each, ask_pools, short_path


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


def test_a_pool_says_what_it_has(pool: sky.Pool) -> None:
    """Its nodes and its calls, by its name or its id; one of another name nothing."""
    assert 3 == sky.function(lambda: 3)() >> pool
    [answer] = ask_each("facts", pool.name)
    assert (pool.name, answer.pool_id, 1, 0) == tuple(
        answer.facts[key] for key in ("pool", "pool_id", "desired", "queued")
    )
    [node] = answer.facts["nodes"]
    assert (0, "local", "ready", 0) == tuple(node[key] for key in ("node", "provider", "state", "calls"))
    assert [answer.pool_id] == [one.pool_id for one in ask_each("facts", answer.pool_id)]
    assert [] == ask_each("facts", "another")


def test_a_pool_says_how_a_node_is_reached(pool: sky.Pool) -> None:
    """A node that is a process of this machine has no address, and one that is not there none at all."""
    [head] = ask_each("address", pool.name)
    assert (0, True, False) == (head.facts["node"], "local" in head.facts, "ssh" in head.facts)
    [refused] = ask_each("address", pool.name, 9)
    assert "node must be" in refused.facts["text"]
    assert "local" not in repr(head)


def test_a_pool_that_does_not_answer_is_named(state: Path) -> None:
    """It may be stopped, or busy: that it is there is known all the same."""
    state.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(state / "a1.sock"))
        listening.listen()
        [answer] = ask_each("facts", within=0.05)
    assert ("a1", {}) == (answer.pool_id, answer.facts)
    assert "does not answer: timed out" in answer.error


@pytest.mark.parametrize(
    "question", [b"", b"\n", b"[]\n", b'{"pool": 1}\n', b'{"pool": null, "node": {}}\n', b"x" * 9000]
)
def test_what_is_no_question_does_no_harm(pool: sky.Pool, state: Path, question: bytes) -> None:
    """The pool answers the next one."""
    [path] = state.glob("*.sock")
    with socket.socket(socket.AF_UNIX) as sock, short_path(path) as short:
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
