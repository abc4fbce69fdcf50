"""SkyPilot has a program of the same name: ours says which one answers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skyward import __version__
from skyward.cli.main import main

pytestmark = pytest.mark.slow


@pytest.fixture
def skypilot(tmp_path: Path) -> Path:
    """Make a folder in which what Python finds of SkyPilot is installed."""
    (tmp_path / "sky").mkdir()
    (tmp_path / "sky" / "__init__.py").write_text("raise RuntimeError('it was loaded')\n")
    facts = tmp_path / "skypilot-0.9.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: skypilot\nVersion: 0.9\n")
    return tmp_path


@pytest.mark.parametrize("words", [["--version"], ["help"]])
def test_beside_skypilot_it_is_said_which_program_answers(skypilot: Path, words: list[str]) -> None:
    """And under which name it always does; SkyPilot is not loaded for that."""
    done = subprocess.run(
        [sys.executable, "-m", "skyward", *words],
        env={"PYTHONPATH": str(skypilot)},
        capture_output=True,
        text=True,
        check=True,
        timeout=40,
    )
    assert "SkyPilot is installed as well. This is Skyward's sky; skyward is the same program" in done.stdout
    assert "" == done.stderr


def test_without_skypilot_nothing_is_said_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The version is one line."""
    assert 0 == main(["--version"])
    assert f"skyward-core {__version__}\n" == capsys.readouterr().out
