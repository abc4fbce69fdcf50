"""The switches of the rehearsal cloud: its faults, put into a provider that is at work."""

from __future__ import annotations

from typing import Any

from skyward.hookspecs import Offer
from skyward.testing import (
    LostResponse,
    NoCapacity,
    Quota,
    Rehearsal,
    SlowApi,
    TerminateFails,
)
from skyward.testing.books import Books
from skyward.testing.conformance import BookedInstance, Switches


def switches(cloud: Rehearsal) -> Switches:
    """Return the faults that the rehearsal cloud can inject."""
    usual = cloud.faults

    def have(*faults: Any) -> None:
        # The value is frozen: a rehearsal has one day. The kit wants several.
        object.__setattr__(cloud, "faults", (*faults, *usual))

    def sell_out(offer: Offer) -> None:
        have(NoCapacity(instance_type=offer.instance_type, region=offer.region, zone=offer.zone))

    def few_left(_offer: Offer) -> int:
        have(NoCapacity(left=1))
        return 3

    def books() -> list[BookedInstance]:
        billed = {each.id for each in cloud.machines()}
        return [
            BookedInstance(
                id=row.id, billed=row.id in billed, region=row.region, instance_type=row.instance_type, spot=row.spot
            )
            for row in Books(cloud.directory).machines()
        ]

    return Switches(
        books=books,
        no_capacity=lambda: have(NoCapacity()),
        no_quota=lambda: have(Quota(machines=0)),
        lose_answer=lambda: have(LostResponse()),
        few_left=few_left,
        refuse_end=lambda: have(TerminateFails()),
        small_pages=lambda: None,
        reclaim=cloud.preempt,
        slow=lambda seconds: have(SlowApi(seconds=seconds / 4)),
        sell_out=sell_out,
        remains=list,
        calm=have,
    )
