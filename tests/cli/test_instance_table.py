"""The table of machines says what is known of each."""

from __future__ import annotations

from attrs import evolve

from skyward.cli.instance_table import HEADER, row
from skyward.model.instances.machine import Instance
from skyward.model.instances.tags import Tags

TRAIN = Instance(
    id="i-1",
    node=0,
    provider="aws",
    tags=Tags(pool_id="a1", pool_name="train", owner="ada@box", expires_at=1000.0),
    launched_at=100.0,
)
SWEEP = evolve(TRAIN, id="i-2", tags=Tags(pool_id="b2", pool_name="sweep", expires_at=9000.0))
BARE = evolve(TRAIN, id="i-4", tags=None)


def test_a_row_tells_what_is_known() -> None:
    """And a question mark what is not."""
    told = dict(zip(HEADER, row(TRAIN, now=4000.0), strict=True))
    assert (told["POOL"], told["OWNER"], told["AGE"], told["EXPIRES"]) == ("train", "ada@box", "1 h", "50 min ago")
    assert row(BARE, now=4000.0)[-1] == "?"
    assert row(SWEEP, now=4000.0)[-1] == "in 1 h"


def test_a_row_tells_that_a_machine_is_without_a_client() -> None:
    """And until when, also where clouds have no tags that can be changed; one that is being ended is told as such."""
    waits = {("aws", "i-1"): ("lingering", 4600.0), ("aws", "i-4"): ("detached", 4600.0)}
    for one, state in ((TRAIN, "lingering"), (BARE, "detached")):
        told = dict(zip(HEADER, row(one, now=4000.0, waits=waits), strict=True))
        assert (told["STATE"], told["EXPIRES"]) == (state, "in 10 min")
    assert row(SWEEP, now=4000.0, waits=waits)[-1] == "in 1 h"
    called_off = evolve(TRAIN, tags=Tags(pool_id="a1", expires_at=0.0))
    assert row(called_off, now=4000.0, waits=waits)[-1] == "being ended"
