"""
The shell text that runs on machines is in files of its own, which shellcheck reads.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from checks.tree import ROOT, files, relative, sources

SCRIPTS = files(".sh")
MOST = 2
"""Conditions of the shell that may stand in a module, in a command of one line."""

_SHELL = re.compile(r"^\s*(?:fi|esac)\b(?! =)|; (?:fi|esac)\b", re.MULTILINE)


PROGRAM = Path(sys.executable).with_name("shellcheck")


@pytest.mark.skipif(not PROGRAM.with_name("ruff").exists(), reason="this environment is without the group `lint`")
def test_shellcheck_finds_nothing() -> None:
    """What is not asked of these files stands in `.shellcheckrc`, with the reason."""
    assert SCRIPTS
    done = subprocess.run([PROGRAM, "--format=gcc", *SCRIPTS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("script", SCRIPTS, ids=relative)
def test_a_script_says_which_shell_it_is_for(script: Path) -> None:
    """Any POSIX shell: machines have dash, busybox or bash."""
    assert "#!/bin/sh" == script.read_text(encoding="utf-8").splitlines()[0]


def test_python_holds_no_shell_script() -> None:
    """A program of the shell is a file, where shellcheck and an editor see it."""
    assert [] == [relative(path) for path in sources() if len(_SHELL.findall(path.read_text(encoding="utf-8"))) > MOST]
