"""How DigitalOcean says what every cloud says."""

from __future__ import annotations

from skyward.errors import CapacityError, CredentialsError, QuotaError
from tests.clouds.digitalocean.client import client
from tests.clouds.digitalocean.cloud import CPU, Cloud, cloud
from tests.clouds.renting.dialect import Dialect, answer, garbled, listed_as, nameless, refused

_QUOTA = "creating this/these droplet(s) will exceed your droplet limit"


def _use_up(ocean: Cloud) -> None:
    ocean.set(stock={f"{CPU}/ams3": 3})


DIALECT = Dialect(
    name="digitalocean",
    cloud=cloud,
    client=client,
    launch="POST /v2/droplets",
    sent="POST /v2/droplets",
    end="DELETE /v2/droplets/*",
    list="GET /v2/droplets",
    broken=answer(500, id="server_error", message="Server Error"),
    throttled={"status": 429, "body": "API rate limit exceeded"},
    unreadable={"status": 200, "body": "<html><title>502 Bad Gateway</title></html>"},
    refusals=(
        refused(CapacityError, **answer(422, id="unprocessable_entity", message="Region is not available")),
        refused(QuotaError, **answer(422, id="unprocessable_entity", message=_QUOTA)),
        refused(CredentialsError, **answer(403, id="forbidden", message="You are not authorized")),
    ),
    kept=answer(403, id="forbidden", message="You are not authorized to perform this operation"),
    command="doctl compute droplet delete --force",
    shorten=_use_up,
    # A call makes all or none, so that fewer are asked for until there are enough.
    nodes=tuple(range(8)),
    left=3,
    expiry=lambda row: next(tag.rpartition(":")[2] for tag in row["tags"] if ":expires:" in tag),
    shows_death=False,
    asks_first=False,
    garbled={
        "size": ({"price_hourly": "a lot"}, "size.price_hourly"),
        "created_at": ("yesterday", "created_at"),
        "region": ({"slug": 7}, "region"),
        "tags": (7, "tags"),
    },
    garble=garbled("GET /v2/droplets*"),
    nameless=nameless("GET /v2/droplets*"),
    odd=listed_as("GET /v2/droplets*", "status"),
    unknown="99999999",
    wrong={"token": "dop_v1_wrong-secret"},
    without=("DIGITALOCEAN_TOKEN", "DIGITALOCEAN_ACCESS_TOKEN"),
)
