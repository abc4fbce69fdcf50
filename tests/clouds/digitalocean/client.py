"""A client of DigitalOcean's hooks, for a small droplet."""

from __future__ import annotations

from functools import partial

from tests.clouds import client as clients
from tests.clouds.digitalocean.cloud import CPU
from tests.clouds.hooks import in_real_time, refusal, run

__all__ = ["client", "in_real_time", "refusal", "run"]

client = partial(clients.client, machine=CPU)
