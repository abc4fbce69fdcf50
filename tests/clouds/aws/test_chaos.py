"""Whatever happens to a client, no machine of its pool outlives its lease, and none is out of sight until then."""

from __future__ import annotations

import os
import random
import textwrap
from collections import Counter
from pathlib import Path

import pytest

import skyward as sky
from tests.clouds.aws.cloud import Cloud
from tests.clouds.killing import AT_ONCE, killed
from tests.seeds import seeds, share
from tests.waiting import until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1200)]

KILLS = share(50)
TTL, BOOT_DEADLINE = 3, 8


@pytest.mark.parametrize("seed", seeds("clients of AWS", 1))
def test_machines_of_clients_killed_at_any_moment_end_and_are_seen_until_then(
    seed: int, aws: Cloud, tmp_path: Path
) -> None:
    """SIGKILLs, fifty if all are drawn, at launch, boot, bootstrap, task and exit of a pool."""
    random_ = random.Random(seed)
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent(f"""
        import sys, time
        import skyward as sky
        from skyward.plan.bootstrap import first_boot
        # So long a machine waits for its first node; two minutes outside of tests.
        first_boot.LEAST_DEADLINE = {BOOT_DEADLINE}
        provider = sky.AWS(user="root", ssh_port={aws.port})
        def stage(event):
            print(type(event).__name__, flush=True)
        while True:
            with sky.Compute(provider=provider, machine="m7i.large", allocation=sys.argv[1], ttl={TTL},
                             console="silent", logging=False, on_event=stage) as pool:
                sky.function(time.sleep)(0.5) >> pool
        """)
    )
    stages: Counter[str] = Counter()
    for _ in range(0, KILLS, AT_ONCE):
        stages += killed(script, random_, tmp_path, os.environ)
        before = {row["id"] for row in aws.alive()}
        seen = {one.id for one in sky.instances([aws.provider()])}
        # What ended while we looked may be missing.
        assert not (before & {row["id"] for row in aws.alive()}) - seen, seed
    print(f"killed after {stages}; {len(aws.instances())} machines were rented")
    assert len(stages) > min(4, KILLS // 10)
    # The lease or the wait for a first node, the watchdog's pause, and a shutdown.
    until(lambda: not aws.alive(), max(TTL, BOOT_DEADLINE) + 20)
    assert [] == list(sky.instances([aws.provider()]))
