"""A client of Verda's hooks, for its smallest machine in Helsinki."""

from __future__ import annotations

from functools import partial

from tests.clouds import client as clients
from tests.clouds.hooks import in_real_time, refusal, run
from tests.clouds.verda.cloud import MACHINE

__all__ = ["client", "in_real_time", "refusal", "run"]

client = partial(clients.client, region="FIN-01", machine=MACHINE)
