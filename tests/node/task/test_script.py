"""A script is a program of its own on a node."""

from __future__ import annotations

import pytest

from skyward.node.task.script import run_script


def test_a_script_gives_its_exit_code_and_prints_as_it_goes(capfd: pytest.CaptureFixture[str]) -> None:
    """It knows its name and what was typed after it, and has a folder of its own."""
    source = b"import os, sys; print(os.path.basename(sys.argv[0]), sys.argv[1:], os.listdir('.')); sys.exit(5)"
    assert run_script("a/train.py", source, ("--epochs", "3")) == 5
    assert capfd.readouterr().out == "train.py ['--epochs', '3'] ['train.py']\n"
