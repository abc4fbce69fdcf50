"""Machines of Verda whose client was killed are deleted by its guardian, with all that the pool had."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.clouds.cloud import ROOT
from tests.clouds.verda.cloud import MACHINE, Cloud
from tests.seeds import some
from tests.waiting import until

pytestmark = [pytest.mark.clouds, pytest.mark.timeout(120)]

NOTHING_BUT_DATA: dict[str, list[str]] = {"keys": [], "scripts": [], "volumes": ["data"]}


MOMENTS = ["InfraCreating", "InfraCreated", "InstanceLaunching", "InstanceProvisioned", "ClusterReady"]


@pytest.mark.parametrize("moment", some("moments of a client's death", MOMENTS))
def test_nothing_outlives_a_client_that_is_killed(verda: Cloud, tmp_path: Path, moment: str) -> None:
    """Neither machine nor disk, key or script, whenever the client dies; but a volume of the user's does."""
    verda.volume()
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, signal, sys, time
        import skyward as sky
        import skyward.engine.guardian.guardian_client
        # So long an empty list is not believed; a minute outside of tests.
        skyward.engine.guardian.guardian_client.APPEARING = 3.0
        client = os.getpid()
        def die(event):
            if type(event).__name__ == sys.argv[1]:
                os.kill(client, signal.SIGKILL)
        provider, disk = sky.Verda(ssh_port={verda.port}), sky.Disk("data", mount={str(tmp_path / "data")!r})
        options = dict(ttl=6, console="silent", logging=False, on_event=die)
        with sky.Compute(provider=provider, machine={MACHINE!r}, volumes=[disk], **options):
            time.sleep(60)
        """)
    )
    state = tmp_path / "state"
    ended = subprocess.run(
        [sys.executable, str(script), moment],
        cwd=ROOT,
        env={**os.environ, "SKYWARD_STATE": str(state)},
        stdin=subprocess.DEVNULL,
        # A guardian that holds them would be waited for.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert -signal.SIGKILL == ended.returncode
    until(lambda: "all its machines are gone" in _log(state), 60)
    assert [] == verda.alive()
    assert NOTHING_BUT_DATA == verda.left()
    assert [] == verda.volumes()["data"]
    verda.ask("drop", ["data"])


def _log(state: Path) -> str:
    path = state / "guardian.log"
    return path.read_text() if path.exists() else ""
