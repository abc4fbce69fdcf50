"""What a client keeps for tasks: whole, apart from that of other pools, and never outside its folders."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skyward.engine.pool import kept_versions
from skyward.engine.pool.kept_versions import KeptVersions
from tests.full_disk import full_disk

NODE = object()
HERE = {"address": "call-a1-7", "named": False}
NAMED = {"address": "key-run", "named": True}


@pytest.fixture
def versions(tmp_path: Path) -> Iterator[KeptVersions]:
    made = KeptVersions(tmp_path / "checkpoints", "a1", "train")
    yield made
    made.close()


def ask(versions: KeptVersions, do: str, data: bytes = b"", owner: object = NODE, **said: Any) -> dict[str, Any]:
    head, found = versions.answer(owner, {"do": do, **said}, bytearray(data))
    return {**head, "data": found} if found else head


def save(versions: KeptVersions, data: bytes, where: dict[str, Any], keep: int = 2) -> Any:
    for at in range(0, len(data), 4):
        assert {} == ask(versions, "write", data[at : at + 4], upload="u", at=at, **where)
    return ask(versions, "publish", upload="u", size=len(data), keep=keep).get("version")


def read(versions: KeptVersions, number: int, where: dict[str, Any]) -> Any:
    return ask(versions, "read", version=number, at=0, **where).get("data")


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path.name != ".lock")


def test_what_was_saved_is_read(versions: KeptVersions) -> None:
    """From any place on, and with its size; the last ones are kept."""
    assert [1, 2, 3] == [save(versions, data, HERE) for data in (b"one", b"two", b"something longer")]
    assert {"versions": [2, 3]} == ask(versions, "list", **HERE)
    assert b"something longer" == read(versions, 3, HERE)
    assert {"size": 16, "data": b"longer"} == ask(versions, "read", version=3, at=10, **HERE)


def test_pieces_come_in_any_order(versions: KeptVersions) -> None:
    """Small ones overtake large ones on the way."""
    ask(versions, "write", b"world", upload="u", at=6, **HERE)
    ask(versions, "write", b"hello ", upload="u", at=0, **HERE)
    assert {"version": 1} == ask(versions, "publish", upload="u", size=11, keep=1)
    assert b"hello world" == read(versions, 1, HERE)


def test_what_is_not_whole_is_not_published(versions: KeptVersions, tmp_path: Path) -> None:
    """And nothing of it is left."""
    save(versions, b"one", HERE)
    ask(versions, "write", b"half", upload="u", at=0, **HERE)
    assert "4 bytes of 8 have arrived" == ask(versions, "publish", upload="u", size=8, keep=1)["error"]
    assert {"versions": [1]} == ask(versions, "list", **HERE)
    assert 1 == len(files(tmp_path))


def test_a_pool_leaves_only_what_has_a_key(versions: KeptVersions, tmp_path: Path) -> None:
    """What its calls saved is of no more use."""
    save(versions, b"one", HERE)
    save(versions, b"two", NAMED)
    ask(versions, "write", b"half", upload="v", at=0, **NAMED)
    versions.close()
    assert ["checkpoints/named/pool-train/key-run/00000001.checkpoint"] == files(tmp_path)


def test_pools_of_another_name_do_not_see_each_other(versions: KeptVersions, tmp_path: Path) -> None:
    """What is loaded is a pickle, and runs code."""
    save(versions, b"mine", NAMED)
    same, other = (KeptVersions(tmp_path / "checkpoints", "b2", name) for name in ("train", "../train"))
    assert b"mine" == read(same, 1, NAMED)
    assert {"versions": []} == ask(other, "list", **NAMED)
    save(other, b"theirs", NAMED)
    assert 2 == len(files(tmp_path / "checkpoints" / "named"))


def test_what_a_dead_client_left_is_removed(versions: KeptVersions, tmp_path: Path) -> None:
    """By the next one that keeps anything; that of one that lives stays."""
    left = tmp_path / "checkpoints" / "pools" / "dead-1"
    (left / "call-1").mkdir(parents=True, mode=0o700)
    for path in (tmp_path / "checkpoints", left.parent, left):
        path.chmod(0o700)
    save(versions, b"mine", HERE)
    assert not left.exists()
    other = KeptVersions(tmp_path / "checkpoints", "b2", "train")
    save(other, b"theirs", HERE)
    assert b"mine" == read(versions, 1, HERE)
    other.close()


def test_what_a_lost_node_was_sending_is_removed(versions: KeptVersions, tmp_path: Path) -> None:
    """What others send stays."""
    lost = object()
    ask(versions, "write", b"half", owner=lost, upload="u", at=0, **HERE)
    ask(versions, "write", b"half", upload="v", at=0, **HERE)
    assert 2 == len(files(tmp_path))
    versions.lost(lost)
    assert 1 == len(files(tmp_path))
    assert {"version": 1} == ask(versions, "publish", upload="v", size=4, keep=1)


def test_what_is_dropped_is_removed(versions: KeptVersions, tmp_path: Path) -> None:
    """Twice does no harm."""
    ask(versions, "write", b"half", upload="u", at=0, **HERE)
    assert ({}, {}) == (ask(versions, "drop", upload="u"), ask(versions, "drop", upload="u"))
    assert [] == files(tmp_path)


def test_a_full_disk_is_answered(versions: KeptVersions) -> None:
    """With the system's number, and what was saved is still there."""
    save(versions, b"one", HERE)
    with full_disk():
        assert errno.EFBIG == ask(versions, "write", b"x", upload="u", at=0, **HERE)["errno"]
    assert b"one" == read(versions, 1, HERE)


def test_some_of_the_disk_stays_free(versions: KeptVersions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes cannot fill it."""
    monkeypatch.setattr(kept_versions, "RESERVE", 1 << 60)
    assert errno.ENOSPC == ask(versions, "write", b"x", upload="u", at=0, **HERE)["errno"]


def test_no_more_are_on_their_way_than_there_are_files(versions: KeptVersions, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not written to for long makes room."""
    monkeypatch.setattr(kept_versions, "MOST_UPLOADS", 2)
    for name in "uv":
        assert {} == ask(versions, "write", b"x", upload=name, at=0, **HERE)
    assert errno.EMFILE == ask(versions, "write", b"x", upload="w", at=0, **HERE)["errno"]
    monkeypatch.setattr(kept_versions, "ABANDONED", -1.0)
    assert {} == ask(versions, "write", b"x", upload="w", at=0, **HERE)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"do": "fly"},
        {"do": "list", "address": "../../etc", "named": True},
        {"do": "list", "address": "a/b", "named": True},
        {"do": "list", "address": 7, "named": True},
        {"do": "list", "named": True},
        {"do": "delete", "address": "..", "named": False},
        {"do": "read", "version": -1, "at": 0, **HERE},
        {"do": "read", "version": "1/../../x", "at": 0, **HERE},
        {"do": "read", "version": 1, "at": -1, **HERE},
        {"do": "read", "version": 1, "at": True, **HERE},
        {"do": "read", "version": 1, "at": 0, **HERE},
        {"do": "write", "upload": "u", "at": 1 << 60, **HERE},
        {"do": "write", "upload": "u", "at": 0.5, **HERE},
        {"do": "write", "at": 0, **HERE},
        {"do": "publish", "upload": "none", "size": 0, "keep": 1},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_answered(versions: KeptVersions, tmp_path: Path, said: dict[str, Any]) -> None:
    """And nothing is written."""
    head, data = versions.answer(NODE, said, bytearray(b"x"))
    assert head["error"]
    assert b"" == data
    assert [] == files(tmp_path)


def test_only_the_user_may_look(versions: KeptVersions, tmp_path: Path) -> None:
    """Folders are this user's alone."""
    save(versions, b"one", HERE)
    save(versions, b"two", NAMED)
    for path in (tmp_path / "checkpoints", *(tmp_path / "checkpoints").iterdir()):
        assert 0o700 == os.stat(path).st_mode & 0o777
