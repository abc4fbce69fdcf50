"""A client of AWS's hooks, for the smallest machine that there is everywhere."""

from __future__ import annotations

from functools import partial

from tests.clouds import client as clients
from tests.clouds.hooks import in_real_time, refusal, run, sold_at

__all__ = ["client", "in_real_time", "refusal", "run", "sold_at"]

client = partial(clients.client, machine="m7i.large")
