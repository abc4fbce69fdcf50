"""Shell text beside a provider's code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from skyward.providers.shell_text import shell_text


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give a package with a script."""
    folder = tmp_path / "shed_of_scripts"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "start.sh").write_text("# What it is for.\n\nset -e\n  # Why.\n  echo @WORD@ @WORD@\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder.name
    sys.modules.pop(folder.name, None)


def test_comments_go_and_names_are_filled_in(package: str) -> None:
    """Wherever they stand."""
    assert "set -e\n  echo hi hi" == shell_text(package, "start", WORD="hi")


def test_a_value_that_has_no_place_is_a_mistake(package: str) -> None:
    """It would be lost unseen."""
    with pytest.raises(KeyError, match="OTHER"):
        shell_text(package, "start", OTHER="hi")
