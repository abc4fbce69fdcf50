"""Pools that are left: all machines at once, and confirmed."""

from __future__ import annotations

import time
from typing import Any

import pytest

import skyward as sky
from tests.clouds.aws.cloud import Cloud

pytestmark = pytest.mark.clouds

NODES, SECONDS = 8, 3.0


def test_machines_are_ended_side_by_side(aws: Cloud) -> None:
    """Each end takes its time; all are asked for before the first is answered, and all are confirmed."""
    seen: dict[str, float] = {}

    def note(event: Any) -> None:
        seen.setdefault(type(event).__name__, time.monotonic())

    with sky.Compute(
        provider=aws.provider(),
        machine="m7i.large",
        nodes=NODES,
        allocation="on-demand",
        console=False,
        logging=False,
        on_event=note,
    ):
        assert NODES == len(aws.alive())
        aws.fault("TerminateInstances", "late", seconds=SECONDS)
    assert [] == aws.alive()
    at = [call["at"] for call in aws.calls() if call["name"] == "ec2:TerminateInstances"]
    assert max(at) - min(at) < SECONDS
    took = seen["ClusterDestroyed"] - seen["PoolStopping"]
    print(f"{NODES} machines ended in {took:.1f} s; each end takes {SECONDS:g} s")
    assert took < NODES * SECONDS / 2
