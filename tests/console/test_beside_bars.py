"""The program's own bars of tqdm, beside what consoles write."""

from __future__ import annotations

import subprocess
import sys

from tqdm import tqdm

from skyward.console import beside_bars as module
from skyward.console.screen import Screen
from tests.console.terminal import Terminal


def test_a_line_is_above_a_bar() -> None:
    """The bar stays whole, below it."""
    terminal = Terminal(columns=60, lines=12)
    screen = Screen(terminal, terminal.size)
    with tqdm(total=4, file=terminal, ncols=40, mininterval=0) as bar:
        bar.update(1)
        screen.write(["node-0 | one", "node-0 | two"])
        bar.update(1)
        bar.refresh()
        rows = [row for row in terminal.rows if row]
        assert ["node-0 | one", "node-0 | two"] == rows[:2]
        assert rows[2].startswith(" 50%")
        assert 3 == len(rows)


def test_tqdm_is_never_imported() -> None:
    """Programs without it have no bars."""
    code = f"import sys, {module.__name__} as m; m.beside_bars(sys.stderr); print('tqdm' in sys.modules)"
    assert "False" == subprocess.check_output([sys.executable, "-c", code], text=True).strip()
