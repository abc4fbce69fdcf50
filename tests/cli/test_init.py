"""A new project runs on this machine as it is written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from skyward.cli.main import main


@pytest.mark.slow
def test_the_example_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the pool of the file beside it."""
    folder = tmp_path / "new"
    assert 0 == main(["init", str(folder)])
    assert f"cd {folder} && python example.py" in capsys.readouterr().out
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=folder,
        env={**os.environ, "SKYWARD_STATE": str(tmp_path / "state")},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "[0, 1, 4, 9, 16, 25, 36, 49]\n" == done.stdout


@pytest.mark.parametrize("name", ["skyward.toml", "example.py"])
def test_nothing_is_overwritten(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor is the other file written."""
    (tmp_path / name).write_text("mine")
    assert 1 == main(["init", str(tmp_path)])
    assert f"{name} is there already, and nothing was written" in capsys.readouterr().err
    assert [name] == os.listdir(tmp_path)
    assert "mine" == (tmp_path / name).read_text()


def test_a_folder_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named."""
    (tmp_path / "file").touch()
    assert 1 == main(["init", str(tmp_path / "file")])
    assert "file cannot be written" in capsys.readouterr().err
