"""A machine of Vast.ai whose client died destroys itself, by a key that is good for nothing else."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import skyward as sky
from tests.clouds.cloud import ROOT
from tests.clouds.vastai.cloud import Cloud
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(180)]

_CLIENT = """
    import os, sys, time
    import skyward as sky
    import skyward.engine.guardian.guardian_client
    import skyward_vastai.start
    # So long an empty list is not believed by the guardian; a minute outside of tests.
    skyward.engine.guardian.guardian_client.APPEARING = 3.0
    # So long a container waits for its first node; five minutes outside of tests.
    skyward_vastai.start.LEAST_DEADLINE = float(sys.argv[1])

    def say(word):
        # At once: events are told by another thread.
        os.write(1, word.encode() + b"\\n")

    def tell(event):
        say(type(event).__name__)

    with sky.Compute(provider=sky.VastAI(), accelerator="RTX 4090", allocation="on-demand", ttl=10, console=False,
                     logging=False, on_event=tell) as pool:
        sky.function(time.sleep)(0) >> pool
        say("works")
        time.sleep(60)
"""


@pytest.mark.parametrize(("moment", "deadline"), [("InstanceLaunched", 4), ("works", 300)])
def test_a_machine_ends_its_own_bill_when_its_client_was_killed(
    vastai: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, deadline: int
) -> None:
    """Before there was a node, and while one worked; until then everybody sees it. A guardian finds nothing left."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    script = tmp_path / "main.py"
    script.write_text(textwrap.dedent(_CLIENT))
    words = [sys.executable, str(script), str(deadline)]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        seen = next((line for line in client.stdout if line.strip() == moment), None)
        client.kill()
    assert seen is not None
    [row] = vastai.alive()
    assert {row["id"]} >= {one.id for one in sky.instances([vastai.provider()])}
    until(lambda: not vastai.alive(), 60)
    assert {f"DELETE /api/v0/instances/{row['id']}/"} == {call["name"] for call in vastai.calls("DELETE")}
    log = tmp_path / "guardian.log"
    until(lambda: log.exists() and "all its machines are gone" in log.read_text(), 60)
