"""Whatever happens to a client, no machine or disk of its pool outlives its guardian, and none is out of sight."""

from __future__ import annotations

import contextlib
import os
import random
import textwrap
from collections import Counter
from pathlib import Path

import pytest

import skyward as sky
from tests.clouds.killing import AT_ONCE, killed
from tests.clouds.verda.cloud import MACHINE, Cloud
from tests.seeds import seeds, share
from tests.waiting import until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

KILLS = share(50)


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
    stages: Counter[str] = Counter()
    env = {**os.environ, "HOME": str(tmp_path), "SKYWARD_STATE": str(tmp_path / "state")}
    for _ in range(0, KILLS, AT_ONCE):
        stages += killed(script, random_, tmp_path, env)
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
