"""Client programs whose machines cannot end their own bill, and the guardians that they have."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

from attrs import asdict

from skyward.engine.guardian.journal import launches
from skyward.testing import Rehearsal
from skyward.testing.books import Books
from tests.hosts import environments

TTL = 5
"""Seconds without their client after which machines are ended, unless a program says otherwise."""

_BEGIN = """
import os, signal, sys, time
import skyward as sky
import skyward.engine.guardian.guardian_client
from skyward.hookspecs import hookimpl
from skyward.testing import *

# So long an empty list is not believed; a minute outside of tests.
skyward.engine.guardian.guardian_client.APPEARING = 1.0
# Whoever runs the tests may ignore these.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
BOOKS = {books!r}
CLIENT = os.getpid()

def told(event):
    if isinstance(event, sky.Error):
        print("told", event.message, flush=True)

def pool(cloud=None, **options):
    cloud = cloud or Rehearsal(directory=BOOKS, ends_own_bill=False)
    options = {{"ttl": {ttl}, "on_event": told, **options}}
    return sky.Compute(provider=cloud, machine="small", console="silent", logging=False, **options)

def die(name):
    # At an event of this name.
    return lambda event: type(event).__name__ == name and os.kill(CLIENT, signal.SIGKILL)

def sleep():
    time.sleep(300)

def wait():
    # For the test to let it go on.
    while not os.path.exists(os.path.expanduser("~/go")):
        time.sleep(0.01)

"""


class Client:
    """
    Run a program that opens pools.

    Args:
        books: The directory of its cloud.
        home: Where its state is; no other test's.
        program: Its text, after the words above.
        env: More of its environment.
    """

    def __init__(self, books: str, home: Path, program: str, env: dict[str, str] | None = None) -> None:
        self.books = books
        self.home = home
        script = home / "main.py"
        script.write_text(_BEGIN.format(books=books, ttl=TTL) + textwrap.dedent(program))
        self.process = subprocess.Popen(
            [sys.executable, str(script)],
            env={**os.environ, "HOME": str(home), "SKYWARD_STATE": str(home / "state"), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def says(self, text: str) -> str:
        """Wait until the program prints a line with a text in it, and return it."""
        assert self.process.stdout is not None
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if text in line:
                return line
        raise AssertionError("".join(seen))

    def go(self) -> None:
        """Let the program go on that waits."""
        (self.home / "go").touch()

    def ends(self, code: int) -> str:
        """Wait until the program has ended with a code, and return what it printed."""
        out, _ = self.process.communicate(timeout=40)
        assert code == self.process.returncode, out
        return out

    def machines(self) -> list[str]:
        """List what the cloud bills now."""
        return [machine.id for machine in Rehearsal(directory=self.books).machines()]

    def ended(self) -> list[float]:
        """Return when machines were ended."""
        return [at for machine in Books(self.books).machines() if (at := machine.ended_at) is not None]

    def guardians(self) -> list[int]:
        """List the guardians that the program started, whatever their parent is now."""
        found = []
        for pid, environ in environments():
            path = Path(f"/proc/{pid}")
            with contextlib.suppress(OSError):
                if (
                    f"\0HOME={self.home}\0".encode() in environ
                    and b"skyward.engine.guardian.guardian_process" in (path / "cmdline").read_bytes()
                    and (path / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                ):
                    found.append(pid)
        return sorted(found)

    def log(self) -> str:
        """Return what guardians wrote."""
        path = self.home / "state" / "guardian.log"
        return path.read_text() if path.exists() else ""

    def open_launches(self) -> list[dict[str, object]]:
        """List what the journal takes for running."""
        return [asdict(one) for one in launches(self.home / "state" / "journal.sqlite") if one.open]

    def lives(self, seconds: float) -> None:
        """Let the program run for a while."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, seconds))

    def end(self) -> None:
        """Leave nothing behind, whatever the test found."""
        self.kill()
        Rehearsal(directory=self.books).clear()

    def kill(self) -> None:
        """Kill the program and its guardians."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        for pid in self.guardians():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
