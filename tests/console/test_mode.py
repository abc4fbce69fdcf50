"""Which console a pool has."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from skyward.console import choose, open_console
from skyward.console.log import LogConsole
from skyward.console.mode import Silent
from skyward.errors import ConfigError
from skyward.model.events.event import Log
from tests.console.terminal import Terminal

FILE, TERMINAL = io.StringIO, Terminal


@pytest.mark.parametrize(
    ("mode", "stream", "term", "chosen"),
    [
        (True, TERMINAL, "xterm", "rich"),
        (True, FILE, "xterm", "log"),
        (True, TERMINAL, "dumb", "log"),
        (False, TERMINAL, "xterm", "silent"),
        ("rich", TERMINAL, None, "rich"),
        ("rich", FILE, "xterm", "log"),
        ("minimal", TERMINAL, "xterm", "minimal"),
        ("minimal", FILE, "xterm", "log"),
        ("spinner", TERMINAL, "xterm", "minimal"),
        ("log", TERMINAL, "xterm", "log"),
        ("log", FILE, None, "log"),
        ("silent", TERMINAL, "xterm", "silent"),
        ("quiet", FILE, "xterm", "silent"),
        (True, lambda: None, "xterm", "silent"),
    ],
)
def test_the_console_fits_the_stream(mode: bool | str, stream: type, term: str | None, chosen: str) -> None:
    """Consoles that draw need a terminal; elsewhere lines are appended."""
    assert chosen == choose(mode, stream(), term)


def test_a_closed_stream_has_no_console() -> None:
    """Where nothing can be written, nothing is."""
    stream = io.StringIO()
    stream.close()
    assert choose(True, stream) == "silent"


def test_a_console_that_does_not_exist_is_refused() -> None:
    """A wrong name is an error, and the nearest right one is offered."""
    with pytest.raises(ConfigError, match=r"console must be .* not 'ritch'\. Did you mean \"rich\"\?"):
        choose("ritch", io.StringIO())


def test_open_console_opens_what_was_chosen() -> None:
    """Each mode has a console that takes events and can be closed."""
    stream = io.StringIO()
    console = open_console(True, stream)
    assert isinstance(console, LogConsole)
    console.handle(Log(line="hello", node=0))
    console.close()
    assert "node-0 | hello" in stream.getvalue()
    silent = open_console(False, stream)
    assert isinstance(silent, Silent)
    assert silent.events == ()
    silent.handle(Log(line="hello", node=0))
    silent.close()


def test_rich_is_loaded_by_the_full_console_only() -> None:
    """Who looks at no full console does not pay for rich."""
    script = (
        "import io, sys\n"
        "from skyward.console import open_console\n"
        "import skyward.console.minimal\n"
        "open_console('log', io.StringIO())\n"
        "assert 'rich' not in sys.modules\n"
        "import skyward.console.live\n"
        "assert 'rich' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
