"""A client of Vast.ai's hooks, for a machine with one GPU of those that are there most often."""

from __future__ import annotations

from functools import partial

from tests.clouds import client as clients
from tests.clouds.client import Client
from tests.clouds.hooks import in_real_time, refusal, run

__all__ = ["Client", "client", "in_real_time", "refusal", "run"]

client = partial(clients.client, accelerator="RTX 4090")
