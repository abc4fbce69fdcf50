"""A server is found on the PATH or in a wheel, and passed over if it is too old or does not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyward.node.store.server_search import LEAST, Server, first_usable, in_wheel, on_path, version


def _program(path: Path, said: str, code: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{said}'\nexit {code}\n")
    path.chmod(0o755)
    return path


def test_valkey_comes_before_redis(tmp_path: Path) -> None:
    """Both speak the protocol; Valkey is the one that we test most."""
    redis = _program(tmp_path / "redis-server", "Redis server v=7.0.15 sha=0")
    valkey = _program(tmp_path / "valkey-server", "Valkey server v=8.1.1 sha=0")
    found = [Server(str(valkey), "valkey-server"), Server(str(redis), "redis-server")]
    assert found == list(on_path(str(tmp_path)))
    assert found[0] == first_usable(on_path(str(tmp_path)), [])


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    """The next one is taken, and the reason is kept."""
    _program(tmp_path / "valkey-server", "Redis server v=6.0.16 sha=0")
    redis = _program(tmp_path / "redis-server", "Redis server v=6.2.0 sha=0")
    refused: list[str] = []
    assert Server(str(redis), "redis-server") == first_usable(on_path(str(tmp_path)), refused)
    assert [f"{tmp_path}/valkey-server is 6.0, and {LEAST[0]}.{LEAST[1]} is needed"] == refused


@pytest.mark.parametrize(("said", "code"), [("Segmentation fault", 139), ("usage: checker <file>", 0)])
def test_one_that_does_not_run_is_passed_over(tmp_path: Path, said: str, code: int) -> None:
    """It may be built for another machine, or be another program."""
    program = _program(tmp_path / "redis-server", said, code)
    refused: list[str] = []
    assert first_usable(on_path(str(tmp_path)), refused) is None
    assert [f"{program} does not run here"] == refused


def test_a_wheel_that_is_installed_has_one() -> None:
    """The environment of the tests has the wheel, as a client's may."""
    (server,) = in_wheel()
    assert (version(server) or ()) >= LEAST


def test_a_folder_without_the_wheel_has_none(tmp_path: Path) -> None:
    """What was broken off leaves nothing that is taken for a server."""
    assert [] == list(in_wheel(str(tmp_path)))
