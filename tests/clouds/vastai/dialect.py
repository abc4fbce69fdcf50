"""How Vast.ai says what every cloud says."""

from __future__ import annotations

from skyward.errors import CapacityError, CredentialsError
from tests.clouds.renting.dialect import Dialect, answer, garbled, listed_as, nameless, refused
from tests.clouds.vastai.client import client
from tests.clouds.vastai.cloud import cloud

_GONE = "error 410/3907: no_such_ask Instance type is no longer available."

DIALECT = Dialect(
    name="vastai",
    cloud=cloud,
    client=client,
    launch="PUT /api/v0/asks/*",
    sent="PUT /api/v0/asks/",
    end="DELETE /api/v0/instances/*",
    list="GET /api/v1/instances/*",
    broken=answer(500, success=False, error="oh", msg="no"),
    throttled={"status": 429, "body": "API requests too frequent endpoint threshold=4.5"},
    unreadable={"status": 200, "body": "<html>busy</html>"},
    refusals=(
        refused(CapacityError, **answer(410, success=False, error="no_such_ask", msg=_GONE)),
        refused(CredentialsError, **answer(400, success=False, error="missing_billing", msg="Insufficient credits.")),
    ),
    kept=answer(403, success=False, error="forbidden", msg="no"),
    command="vastai destroy instance",
    nodes=(0, 1),
    left=1,
    together=False,
    asks_first=False,
    garbled={
        "dph_total": ("a lot", "dph_total"),
        "start_date": ("yesterday", "start_date"),
        "is_bid": (None, "is_bid"),
        "num_gpus": ("many", "num_gpus"),
    },
    garble=garbled("GET /api/v1/instances/*"),
    nameless=nameless("GET /api/v1/instances/*"),
    odd=listed_as("GET /api/v1/instances/*", "actual_status"),
    unknown="27999999",
    wrong={"api_key": "wrong-secret"},
    without=("VAST_API_KEY",),
)
