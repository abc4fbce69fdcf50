"""A client of RunPod's hooks, for a pod without GPUs."""

from __future__ import annotations

from functools import partial

from skyward.model.instances.machine import Instance, InstanceState
from tests.clouds import client as clients
from tests.clouds.hooks import in_real_time, refusal, run

__all__ = ["client", "in_real_time", "refusal", "run", "runs"]

client = partial(clients.client, machine="cpu5c:2")


def runs(found: list[Instance]) -> bool:
    """Say whether all machines run."""
    return bool(found) and all(each.state is InstanceState.RUNNING for each in found)
