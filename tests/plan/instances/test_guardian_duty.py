"""What a guardian makes of what it hears, when it acts, and when it believes that nothing is left."""

from __future__ import annotations

import pytest
from attrs import evolve

from skyward.model.instances.cluster import Cluster
from skyward.model.instances.machine import EndsOwnBill, Instance, InstanceState, ProviderFacts
from skyward.model.instances.offer import Offer
from skyward.model.instances.tags import Tags
from skyward.model.spec.image import Image
from skyward.model.spec.spec import Spec
from skyward.model.spec.trust_setting import Data
from skyward.plan.instances.guardian_duty import (
    LIFE,
    LONGEST_PAUSE,
    Dismissed,
    Duty,
    InstanceEnded,
    InstanceRented,
    Message,
    Opening,
    RegionOpened,
    TakeOver,
    due,
    ender,
    existing,
    needed,
    over,
    pause,
    promise,
    take,
    to_end,
)

DUTY = Duty(pool_id="a1", pool_name="train", ttl=600.0, lag=60.0)


def cluster(region: str, spec: Spec | None = None) -> Cluster:
    """Describe the pool in a region."""
    offer = Offer(provider="cloud", instance_type="small", region=region)
    return Cluster(pool_id="a1", pool_name="train", spec=spec or Spec(), offer=offer, provider="cloud", nodes=1)


@pytest.mark.parametrize(
    ("rents", "ends", "ttl", "expected"),
    [
        (True, False, 600.0, True),
        (True, True, 600.0, False),
        (True, "running", 600.0, True),
        (True, "running", 0.0, False),
        (False, False, 600.0, False),
        (True, False, 0.0, False),
        (True, False, None, False),
    ],
)
def test_pools_that_need_a_guardian(*, rents: bool, ends: EndsOwnBill, ttl: float | None, expected: bool) -> None:
    """Pools whose machines are rented and cannot end their own bill in every state, unless that is disarmed."""
    assert expected is needed(ProviderFacts(name="cloud", ends_own_bill=ends, rents=rents), ttl)


@pytest.mark.parametrize(
    ("ends", "enders"),
    [
        (True, ["machine", "machine", "machine"]),
        ("running", ["guardian", "machine", "guardian"]),
        (False, ["guardian", "guardian", "guardian"]),
    ],
)
def test_each_state_of_a_machines_life_has_an_ender(ends: EndsOwnBill, enders: list[str]) -> None:
    """On its way, running, and failed or taken back, which is billed until it is ended."""
    facts = ProviderFacts(name="cloud", ends_own_bill=ends)
    assert enders == [ender(facts, state) for state in LIFE]
    assert {*LIFE, InstanceState.ENDED} == {*InstanceState}


@pytest.mark.parametrize(
    ("ends", "expire", "words"),
    [
        (False, True, "M cannot end their own bill: guardian (process 7) ends them 600 s after this process dies."),
        ("running", False, "M end their own bill only once they run: guardian (process 7) ends them 600 s after"),
    ],
)
def test_what_a_guardian_is_there_for_is_said(ends: EndsOwnBill, *, expire: bool, words: str) -> None:
    """And what finds the machines if it dies too: an expiry where they bear one, else the pool's id."""
    said = promise("M", 7, DUTY, ProviderFacts(name="cloud", ends_own_bill=ends), expire=expire)
    assert said.startswith(words)
    assert said.endswith("sky down --expired" if expire else "sky down a1")


def test_regions_and_machines_are_remembered() -> None:
    """Each region once, with what was said of it last; machines until they are ended."""
    here, there = cluster("here"), cluster("there")
    told: list[Message] = [RegionOpened(here, "old"), RegionOpened(there, "net"), RegionOpened(here, "new")]
    told += [InstanceRented(("i-1", "i-2")), InstanceEnded(("i-1", "i-9"))]
    duty = DUTY
    for message in told:
        duty = take(duty, message)
    assert [("there", "net"), ("here", "new")] == [(known.offer.region, infra) for known, infra in duty.regions]
    assert {"i-2"} == duty.machines
    assert (True, False) == (duty.knows(here), duty.knows(cluster("elsewhere")))
    assert duty == take(DUTY, duty)


def test_a_region_that_is_set_up_is_cleared_away_and_no_machine_is_looked_for_there() -> None:
    """What is shared there is not known until it is set up, and no more asked for then."""
    here, there = cluster("here"), cluster("there")
    duty = take(take(take(DUTY, Opening(here)), Opening(here)), Opening(there))
    assert (((here, None), (there, None)), ()) == (duty.shared, duty.regions)
    duty = take(duty, RegionOpened(here, "net"))
    assert ((here, "net"), (there, None)) == duty.shared
    assert (True, False) == (duty.knows(here), duty.knows(there))
    assert duty == take(duty, Opening(here))
    assert (True, True, False) == tuple(duty.prepared(cluster(one)) for one in ("here", "there", "elsewhere"))


def test_what_only_nodes_need_stays_with_the_client() -> None:
    """Neither the provider, nor plugins, nor an image with its variables."""
    spec = Spec(
        provider=object(),
        plugins=[object()],
        image=Image(env={"TOKEN": "secret"}),
        region="here",
        ttl=60,
        trust=Data(Spec),
    )
    opened = RegionOpened(cluster("here", spec), None)
    assert Spec(region="here", ttl=60) == opened.cluster.spec


@pytest.mark.parametrize(
    ("messages", "idle"),
    [
        ([], True),
        ([Opening(cluster("here"))], False),
        ([Opening(cluster("here")), Dismissed()], True),
        ([RegionOpened(cluster("here"), None)], False),
        ([RegionOpened(cluster("here"), None), TakeOver()], False),
        ([RegionOpened(cluster("here"), None), Dismissed()], True),
    ],
)
def test_without_a_region_or_after_all_was_given_back_there_is_nothing_to_do(
    messages: list[Message], *, idle: bool
) -> None:
    """Nothing is set up or rented before its region was told of."""
    duty = DUTY
    for message in messages:
        duty = take(duty, message)
    assert idle is duty.idle


def test_machines_are_ended_after_ttl_or_at_once() -> None:
    """A client that died gets `ttl`; one that left its pool and says so is waited for no more."""
    assert 700.0 == due(DUTY, died=100.0)
    assert 100.0 == due(take(DUTY, TakeOver()), died=100.0)


def test_all_that_may_cost_money_is_ended() -> None:
    """What the list has, also if it was ended before, and what the client knew of and the list may lack."""
    duty = take(DUTY, InstanceRented(("i-1", "i-2")))
    assert ("i-1", "i-2", "i-3") == to_end(duty, frozenset({"i-3"}), frozenset())
    assert ("i-2", "i-3") == to_end(duty, frozenset({"i-3"}), frozenset({"i-1", "i-3"}))


def test_only_machines_of_the_pool_that_are_there() -> None:
    """Those that ended cost nothing, and another pool's are never ours; in a list of all, the tag has to say so."""
    rows = [
        Instance(id="i-1", node=0, provider="cloud", tags=Tags(pool_id="a1")),
        Instance(id="i-2", node=0, provider="cloud", tags=Tags(pool_id="b2")),
        Instance(id="i-3", node=0, provider="cloud"),
        Instance(id="i-4", node=0, provider="cloud", tags=Tags(pool_id="a1"), state=InstanceState.ENDED),
        Instance(id="i-5", node=0, provider="cloud", tags=Tags(pool_id="a1"), state=InstanceState.ENDING),
    ]
    assert {"i-1", "i-3", "i-5"} == existing(rows, "a1")
    assert {"i-1", "i-5"} == existing(rows, "a1", tagged=True)


@pytest.mark.parametrize(("empty", "since", "expected"), [(2, 60.0, True), (1, 9e9, False), (99, 59.0, False)])
def test_an_empty_list_is_not_believed_at_once(*, empty: int, since: float, expected: bool) -> None:
    """It takes two in a row, and time for a launch that was under way when the client died."""
    assert expected is over(DUTY, empty=empty, since=since)
    assert over(evolve(DUTY, lag=0.0), empty=2, since=0.0)


def test_pauses_grow_and_are_bounded() -> None:
    """Each is longer than the one before, up to five minutes, and no two guardians ask in step."""
    pauses = [pause(attempts, 0.5) for attempts in range(40)]
    assert pauses == sorted(pauses)
    assert (1.0, LONGEST_PAUSE) == (pauses[0], pauses[-1])
    assert pause(3, 0.0) < pause(3, 1.0)
