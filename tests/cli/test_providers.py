"""Whether a provider can be used is asked before anything is rented."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skyward.cli.main import main

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no credentials and no project."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("RUNPOD_API_KEY", raising=False)


def test_one_that_can_be_used(capsys: pytest.CaptureFixture[str]) -> None:
    """Each question has an answer."""
    assert 0 == main(["providers", "check", "local"])
    lines = capsys.readouterr().out.splitlines()
    assert "local:" == lines[0]
    assert ["credentials ok it needs none", "list offers ok 1 kinds"] == [
        " ".join(line.split())[:length] for line, length in zip(lines[1:], (28, 22), strict=False)
    ]


def test_one_without_credentials(capsys: pytest.CaptureFixture[str]) -> None:
    """It fails, says what is missing, and is asked nothing else."""
    assert 1 == main(["providers", "check", "runpod"])
    said = capsys.readouterr()
    assert "credentials  FAILED" in said.out
    assert "RUNPOD_API_KEY" in said.out
    assert "list offers" not in said.out


@pytest.mark.parametrize("words", [["--json", "check", "runpod"], ["check", "runpod", "--json"]])
def test_the_same_for_programs(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As one JSON value, wherever the option stands."""
    assert 1 == main(["providers", *words])
    found = json.loads(capsys.readouterr().out)
    assert (False, "runpod") == (found["ok"], found["providers"][0]["provider"])
    assert (False, "credentials") == tuple(found["providers"][0]["checks"][0][key] for key in ("ok", "check"))


def test_one_that_needs_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    """It is named in a skyward.toml, or not at all."""
    assert 2 == main(["providers", "check", "ssh"])
    assert "'ssh' cannot be made without arguments" in capsys.readouterr().err


def test_one_that_is_mistyped(capsys: pytest.CaptureFixture[str]) -> None:
    """The nearest is offered."""
    assert 2 == main(["providers", "check", "runpd"])
    assert "Did you mean 'runpod'?" in capsys.readouterr().err
