"""How RunPod says what every cloud says."""

from __future__ import annotations

from skyward.errors import CapacityError, ConfigError, CredentialsError, QuotaError
from tests.clouds.renting.dialect import Dialect, answer, garbled, listed_as, nameless, refused
from tests.clouds.runpod.client import client
from tests.clouds.runpod.cloud import Cloud, cloud
from tests.clouds.runpod.server import FULL


def _fill(runpod: Cloud) -> None:
    runpod.fault("POST /v2/pods", **answer(400, detail=FULL), times=2)


DIALECT = Dialect(
    name="runpod",
    cloud=cloud,
    client=client,
    launch="POST /v2/pods",
    sent="POST /v2/pods",
    end="DELETE /v2/pods/*",
    list="GET /v2/pods",
    broken=answer(500, detail="upstream error"),
    throttled={"status": 429, "body": "Too many requests"},
    unreadable={"status": 200, "body": "<html>Maintenance</html>"},
    refusals=(
        refused(CapacityError, **answer(400, detail=FULL)),
        refused(QuotaError, **answer(400, detail="You have reached your spend limit.")),
        refused(CredentialsError, **answer(402, detail="insufficient balance")),
        refused(ConfigError, **answer(422, title="Request validation failed.", errors=["$.image: image not found"])),
    ),
    kept=answer(403, detail="access denied"),
    command="runpod",
    shorten=_fill,
    left=1,
    shows_fresh=False,
    asks_first=False,
    garbled={
        "cost": ("a lot", "cost"),
        "createdAt": ("yesterday", "createdAt"),
        "dataCenterId": (7, "dataCenterId"),
    },
    garble=garbled("GET /v2/pods*"),
    nameless=nameless("GET /v2/pods*"),
    odd=listed_as("GET /v2/pods*", "status"),
    unknown="nobody",
    wrong={"api_key": "wrong-secret"},
    without=("RUNPOD_API_KEY",),
)
