"""The switches of Heron."""

from __future__ import annotations

from typing import Any

from skyward.hookspecs import Offer
from skyward.testing.conformance import BookedInstance, Switches
from tests.clouds.heron.cloud import Cloud

_LAUNCH, _LIST = "POST /v1/machines", "GET /v1/machines"


def switches(heron: Cloud) -> Switches:
    """Return the faults that Heron can inject."""

    def refuse(status: int, code: str) -> Any:
        return lambda: heron.fault(_LAUNCH, status=status, body={"code": code, "message": "No."})

    def books() -> list[BookedInstance]:
        return [
            BookedInstance(
                id=row["id"], billed=row["alive"], region=row["region"], instance_type=row["size"], spot=row["spot"]
            )
            for row in heron.instances()
        ]

    def left(offer: Offer, number: int) -> None:
        heron.set(stock={f"{offer.instance_type}/{offer.region}": number})

    def few_left(offer: Offer) -> int:
        left(offer, 1)
        return 3

    return Switches(
        books=books,
        no_capacity=refuse(409, "sold_out"),
        no_quota=refuse(403, "limit_reached"),
        no_login=lambda: heron.fault("*", status=401, body={"code": "unauthorized"}),
        lose_answer=lambda: heron.fault(_LAUNCH, "cut", times=1),
        few_left=few_left,
        refuse_end=lambda: heron.fault("DELETE /v1/machines/*", status=500, times=1),
        break_lists=lambda: heron.fault(_LIST, status=200, body="<html>Maintenance</html>"),
        small_pages=lambda: heron.set(page=1),
        fail_boots=lambda: heron.fault(_LAUNCH, "dies"),
        reclaim=heron.interrupt,
        impersonate=lambda: heron.fault(_LAUNCH, "key"),
        slow=lambda seconds: heron.fault("*", "late", seconds=seconds),
        sell_out=lambda offer: left(offer, 0),
        raise_price=lambda offer: heron.set(dearer={f"{offer.instance_type}/{offer.region}": 1.5}),
        remains=list,
        shows_stock=True,
        ttl=2.0,
        calm=heron.calm,
    )
