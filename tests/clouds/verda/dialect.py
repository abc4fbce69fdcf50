"""How Verda says what every cloud says."""

from __future__ import annotations

from skyward.errors import CapacityError, ConfigError, CredentialsError, QuotaError
from tests.clouds.renting.dialect import Dialect, answer, garbled, listed_as, nameless, refused
from tests.clouds.verda.client import client
from tests.clouds.verda.cloud import Cloud, cloud

_LIMIT = answer(400, code="invalid_request", message="Instance limit exceeded")


def _reach_the_quota(verda: Cloud) -> None:
    verda.fault("POST /v1/instances", **_LIMIT, times=1)


DIALECT = Dialect(
    name="verda",
    cloud=cloud,
    client=client,
    launch="POST /v1/instances",
    sent="POST /v1/instances",
    end="PUT /v1/instances",
    list="GET /v1/instances",
    broken=answer(500, code="server_error", message="Internal"),
    throttled={"status": 429, "body": "Too many requests"},
    unreadable={"status": 200, "body": "<html><body>Bad gateway</body></html>"},
    refusals=(
        refused(CapacityError, **answer(503, code="service_unavailable", message="Not enough resources to deploy it")),
        refused(QuotaError, **_LIMIT),
        refused(CredentialsError, **answer(402, code="insufficient_funds", message="Insufficient funds")),
        refused(ConfigError, **answer(400, code="invalid_request", message="Operating system is not valid for this")),
    ),
    kept=answer(403, code="insufficient_permissions", message="No."),
    command="sky down",
    shorten=_reach_the_quota,
    left=2,
    expiry=lambda row: row["tags"]["skyward-expires"],
    garbled={
        "price_per_hour": ("a lot", "price_per_hour"),
        "instance_type": (None, "instance_type"),
        "is_spot": ("maybe", "is_spot"),
        "location": (7, "location"),
    },
    garble=garbled("GET /v1/instances*"),
    nameless=nameless("GET /v1/instances*"),
    odd=listed_as("GET /v1/instances*", "status"),
    unknown="00000000-0000-4000-8000-000000000000",
    wrong={"client_id": "somebody", "client_secret": "wrong-secret"},
    without=("VERDA_CLIENT_ID", "VERDA_CLIENT_SECRET"),
)
