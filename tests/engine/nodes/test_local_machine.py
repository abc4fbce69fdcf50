"""On this machine, variables of an image are worked out, and system packages are looked for and never installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skyward.engine.nodes.local_machine import missing_packages, shell_variables
from skyward.errors import ProvisionError
from skyward.model.spec.image import Image

DPKG = """#!/bin/sh
for name; do :; done
case $name in
  git) echo "install ok installed 1:2.39" ;;
  gone) echo "deinstall ok config-files 1.0" ;;
  *) echo "no packages found matching $name" >&2; exit 1 ;;
esac
"""


@pytest.fixture
def dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which git is installed."""
    program = tmp_path / "bin" / "dpkg-query"
    program.parent.mkdir()
    program.write_text(DPKG)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.usefixtures("dpkg")
@pytest.mark.parametrize(
    ("name", "there"), [("git", True), ("git=1:2.39", True), ("git=1:2.4", False), ("gone", False), ("jq", False)]
)
def test_what_is_not_installed_is_found(name: str, there: bool) -> None:
    """A package of which only the settings are left is not there, nor is another version."""
    assert (() if there else (name,)) == missing_packages([name])


def test_without_dpkg_nothing_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a Mac."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing_packages(["git"]) is None


def test_a_variable_is_what_its_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the home directory, with the image's variables, and without the line ends behind it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    image = Image(
        env={"A": "1"},
        shell_vars={"SUM": 'echo "$((A + 1))"', "LINES": "printf 'a\\nb\\n\\n'", "HERE": "pwd", "NONE": "true"},
    )
    expected = {"SUM": "2", "LINES": "a\nb", "HERE": str(tmp_path), "NONE": ""}
    assert expected == shell_variables(image, None, timeout=30.0)


def test_a_variable_finds_the_environment(tmp_path: Path) -> None:
    """First on the path, and as VIRTUAL_ENV."""
    image = Image(shell_vars={"ROOT": 'echo "$VIRTUAL_ENV"', "FIRST": 'echo "${PATH%%:*}"'})
    found = shell_variables(image, tmp_path / "bin" / "python", timeout=30.0)
    assert {"ROOT": str(tmp_path), "FIRST": str(tmp_path / "bin")} == found


def test_a_command_that_fails_is_told_with_its_last_lines() -> None:
    """And with what to correct; one that hangs is ended."""
    image = Image(shell_vars={"BAD": "echo no such thing >&2; exit 3"})
    with pytest.raises(ProvisionError, match=r"(?s)'shell_vars' failed with code 3: .*\| no such thing \nCorrect the"):
        shell_variables(image, None, timeout=30.0)
    with pytest.raises(ProvisionError, match=r"longer than 0\.2 s: sleep 60 Raise bootstrap_timeout"):
        shell_variables(Image(shell_vars={"SLOW": "sleep 60"}), None, timeout=0.2)
