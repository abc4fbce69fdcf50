"""Scripts of machines are files: their words are filled in, and what only tools look at stays here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skyward.shell_files import shell_file


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a package with a script."""
    room = tmp_path / "a_package_with_shell"
    room.mkdir()
    (room / "__init__.py").touch()
    (room / "greet.sh").write_text(
        '#!/bin/sh\n# Greets.\n  # shellcheck disable=SC2086 # words\nprintf "%s@@%s\\n" @ONE@ "@TWO@"\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, room.name, raising=False)
    return room.name


def test_words_are_filled_in_once(package: str) -> None:
    """What a word is filled with is text: a word in it stays as it is."""
    text = shell_file(package, "greet.sh", ONE="@TWO@", TWO="2")
    assert 'printf "%s@@%s\\n" @TWO@ "2"' == text
    assert "@TWO@@@2\n" == subprocess.run(["sh", "-c", text], capture_output=True, text=True, check=True).stdout


def test_a_word_that_is_missing_is_an_error(package: str) -> None:
    """No script reaches a machine with a hole in it."""
    with pytest.raises(KeyError, match="TWO"):
        shell_file(package, "greet.sh", ONE="1")
    with pytest.raises(FileNotFoundError, match=r"other\.sh"):
        shell_file(package, "other.sh")
