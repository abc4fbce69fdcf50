"""Whatever happens to a client, no machine or disk of its pool outlives its guardian, and none is out of sight."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import skyward as sky
from tests.clouds.cloud import ROOT, until
from tests.clouds.verda.cloud import MACHINE, Cloud
from tests.seeds import seeds, share

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(400)]

KILLS, AT_ONCE = share(50), 5
SHORTEST_LIFE, LONGEST_LIFE = 1.5, 14.0


@pytest.mark.parametrize("seed", seeds("clients of Verda", 1))
def test_machines_of_clients_killed_at_any_moment_end_and_are_seen_until_then(
    seed: int, verda: Cloud, tmp_path: Path
) -> None:
    """SIGKILLs, fifty if all are drawn, at launch, boot, bootstrap, task and exit of a pool."""
    random_ = random.Random(seed)
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys, time
        import skyward as sky
        import skyward.engine.guardian.guardian_client
        # So long an empty list is not believed; a minute outside of tests.
        skyward.engine.guardian.guardian_client.APPEARING = 3.0
        provider = sky.Verda(ssh_port={verda.port})
        def stage(event):
            print(type(event).__name__, flush=True)
        while True:
            with sky.Compute(provider=provider, machine={MACHINE!r}, allocation=sys.argv[1], ttl=4,
                             console="silent", logging=False, on_event=stage) as pool:
                sky.function(time.sleep)(0.5) >> pool
        """)
    )
    stages: dict[str, int] = {}
    for number in range(0, KILLS, AT_ONCE):
        began = time.monotonic()
        moments = sorted(random_.uniform(SHORTEST_LIFE, LONGEST_LIFE) for _ in range(AT_ONCE))
        outs = [tmp_path / f"out{number + each}" for each in range(AT_ONCE)]
        clients = [_client(script, random_.choice(["spot", "on-demand"]), out, tmp_path) for out in outs]
        for client, out, moment in zip(clients, outs, moments, strict=True):
            with contextlib.suppress(subprocess.TimeoutExpired):
                client.wait(max(0.0, began + moment - time.monotonic()))
            client.kill()
            client.wait()
            last = out.read_text().split()[-1:] or ["start"]
            stages[last[0]] = stages.get(last[0], 0) + 1
        before = {row["id"] for row in verda.alive()}
        seen = {one.id for one in sky.instances([verda.provider()])}
        # What ended while we looked may be missing.
        assert not (before & {row["id"] for row in verda.alive()}) - seen, seed
    print(f"killed after {stages}; {len(verda.instances())} machines were rented")
    assert len(stages) > min(4, KILLS // 10)
    until(lambda: not verda.alive(), 60)
    assert [] == list(sky.instances([verda.provider()]))
    assert [] == verda.left()["volumes"]
    # Guardians that end late find nothing, but ask the cloud still.
    until(lambda: not _guardians(tmp_path), 60)
    # A client that dies while it registers them leaves them, which costs nothing.
    verda.ask("clear", {})


def _client(script: Path, allocation: str, out: Path, home: Path) -> subprocess.Popen[bytes]:
    # A file, because a guardian would hold a pipe.
    with out.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, str(script), allocation],
            cwd=ROOT,
            env={**os.environ, "HOME": str(home), "SKYWARD_STATE": str(home / "state")},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.DEVNULL,
        )


def _guardians(home: Path) -> list[str]:
    """List the guardians that clients with this home left behind."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (
                f"HOME={home}".encode() in (path / "environ").read_bytes().split(b"\0")
                and b"skyward.engine.guardian.guardian_process" in (path / "cmdline").read_bytes()
            ):
                found.append(path.name)
    return found
