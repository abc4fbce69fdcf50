"""Programs of one user that rehearse side by side have books of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from skyward.testing import Rehearsal
from skyward.testing.books import Books
from tests.testing.client import Client

OTHER = """
import asyncio, json, sys
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.testing import Rehearsal

cloud = Rehearsal()
owned = asyncio.run(ProviderHandle(cloud).call("skyward_owned", timeout=20))
cloud.clear()
seen = [len(cloud.machines()), cloud.bill(), sorted(one.id for one in owned)]
if "end" in sys.argv:
    asyncio.run(ProviderHandle(cloud).call("skyward_end", instances=owned, timeout=20))
print(json.dumps(seen))
"""


def other(*words: str) -> Any:
    """Run another program of this user, and return its machines, its bill, and all machines of the user."""
    command = [sys.executable, "-c", OTHER, *words]
    done = subprocess.run(
        command, env={**os.environ, "TMPDIR": tempfile.gettempdir()}, check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


@pytest.fixture
def together(books: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Have programs that name no directory rehearse in a place of this test's own, and return where this one does."""
    monkeypatch.setattr(tempfile, "tempdir", books)
    return Rehearsal().directory


def test_programs_that_name_no_directory_are_apart(together: str) -> None:
    """Neither sees, pays for or clears what another rents; in lists of all it is found, and can be ended."""
    client = Client(together)
    made = sorted(machine.id for machine in client.launch(0, 1))
    assert client.cloud == Rehearsal()
    assert [0, 0.0, made] == other()
    assert made == sorted(client.list())
    other("end")
    assert {} == client.list()
    client.cloud.clear()


def test_what_another_program_rented_is_renewed_and_ended_by_its_id(together: str) -> None:
    """As `sky down` does; nothing is written about it anywhere else."""
    client, theirs = Client(together), Client(str(Path(together).with_name(f"{os.getpid()}-ffff")))
    [machine] = theirs.launch(0)
    client.ask("skyward_renew", cluster=theirs.cluster, infra=None, ids=[machine.id], expires_at=0.0)
    assert "0" == Books(theirs.cloud.directory).machines()[0].tags["skyward:expires"]
    client.ask("skyward_end", instances=[machine])
    assert ({}, False) == (theirs.list(), Path(together).exists())
    theirs.cloud.clear()


def test_books_of_programs_that_are_over_are_removed(together: str) -> None:
    """With the next pool that is opened; not while a machine is left, nor what a running program has."""
    gone = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    number = int(gone.stdout)
    ended, left, running = (
        Client(str(Path(together).with_name(name))) for name in (f"{number}-aa", f"{number}-bb", f"{os.getpid()}-cc")
    )
    for client in (ended, left, running):
        client.launch(0)
    for client in (ended, running):
        client.end()
    Path(together).parent.joinpath("notes").mkdir()
    mine = Client(together)
    mine.ask("skyward_open", cluster=mine.cluster)
    assert ["notes", *sorted(Path(client.cloud.directory).name for client in (left, running))] == sorted(
        (path.name for path in Path(together).parent.iterdir()), key=lambda name: (name != "notes", name)
    )
    left.end()
    mine.ask("skyward_open", cluster=mine.cluster)
    assert not Path(left.cloud.directory).exists()
    for client in (running, mine):
        client.cloud.clear()
    shutil.rmtree(Path(together).parent)
