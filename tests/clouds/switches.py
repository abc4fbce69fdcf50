"""The switches that every test cloud has alike, out of the words in which it is spoken to; see `Switches`."""

from __future__ import annotations

from typing import Any

from skyward.errors import CapacityError, QuotaError, SkywardError
from skyward.testing.conformance import BookedInstance, Switches
from tests.clouds.cloud import Cloud
from tests.clouds.provoking import take_back
from tests.clouds.renting.dialect import Dialect


def switches(cloud: Cloud, dialect: Dialect, **own: Any) -> Switches:
    """
    Return the faults that a test cloud can inject.

    Args:
        cloud: The cloud.
        dialect: How it speaks.
        own: What is its own: other switches, or others in the place of these; None for what it cannot do.
    """

    def refuse(kind: type[SkywardError]) -> Any:
        told = next((each for each in dialect.refusals if each.kind is kind), None)
        return None if told is None else lambda: cloud.fault(dialect.launch, **told.facts)

    def books() -> list[BookedInstance]:
        return [
            BookedInstance(
                id=row["id"],
                billed=row["alive"],
                region=row.get("region"),
                instance_type=row.get("type") or row.get("size"),
                spot=row["spot"],
            )
            for row in cloud.instances()
        ]

    def few_left(_offer: Any) -> int:
        dialect.shorten(cloud)
        return len(dialect.nodes)

    def reclaim(name: str) -> None:
        take_back(cloud, next(row for row in cloud.instances() if row["id"] == name))

    usual = {
        "books": books,
        "no_capacity": refuse(CapacityError),
        "no_quota": refuse(QuotaError),
        "no_login": lambda: cloud.fault("*", status=401, body={"message": "Unauthorized"}),
        "lose_answer": lambda: cloud.fault(dialect.launch, "cut", times=1),
        "few_left": few_left,
        "refuse_end": lambda: cloud.fault(dialect.end, **dialect.broken, times=1),
        "break_lists": lambda: cloud.fault(f"{dialect.list}*", **(dialect.unreadable or dialect.broken)),
        # An API without pages has all on one.
        "small_pages": lambda: None,
        "fail_boots": lambda: cloud.fault(dialect.launch, "dies"),
        "reclaim": reclaim,
        "impersonate": lambda: cloud.fault(dialect.launch, "key"),
        "slow": lambda seconds: cloud.fault("*", "late", seconds=seconds),
        "remains": cloud.remains,
        "calm": cloud.calm,
    }
    return Switches(**{**usual, **own})
