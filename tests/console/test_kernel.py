"""Which front ends show HTML, and that IPython is never loaded."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from skyward.console.kernel import reads_html, running_kernel

CONSOLE: dict[str, Any] = {"metadata": {}, "content": {"allow_stdin": True}}


@pytest.mark.parametrize(
    ("request_of_cell", "environ"),
    [
        ({"metadata": {"cellId": "a"}, "content": {"allow_stdin": True}}, {}),
        ({"metadata": {"deletedCells": []}, "content": {"allow_stdin": True}}, {}),
        ({"metadata": {}, "content": {"allow_stdin": False}}, {}),
        (CONSOLE, {"JPY_SESSION_NAME": "a.ipynb"}),
        (CONSOLE, {"COLAB_RELEASE_TAG": "1"}),
    ],
    ids=["notebook", "older notebook", "batch", "server", "Colab"],
)
def test_a_notebook_shows_html(request_of_cell: dict[str, Any], environ: dict[str, str]) -> None:
    """Whatever runs it."""
    assert reads_html(request_of_cell, environ)


@pytest.mark.parametrize("request_of_cell", [CONSOLE, {}], ids=["console", "nothing known"])
def test_a_console_of_text_does_not(request_of_cell: dict[str, Any]) -> None:
    """The protocol says nothing about it."""
    assert not reads_html(request_of_cell, {"HOME": "a"} if request_of_cell else {})


def test_a_program_is_no_kernel() -> None:
    """IPython is not imported to find out."""
    assert running_kernel() is None
    code = "import sys, skyward.console.mode as mode; mode.open_console(False); print('IPython' in sys.modules)"
    assert "False" == subprocess.check_output([sys.executable, "-c", code], text=True).strip()
