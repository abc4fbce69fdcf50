"""What a guardian ends, and when: its client is a pipe in memory, its cloud a dictionary, its time virtual."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, field, frozen

from skyward.engine.guardian import guardian_messages as charge, guardian_process as guardian
from skyward.engine.guardian.guardian_process import SPREAD, Guardian
from skyward.engine.instances.detached_records import DETACHED
from skyward.engine.instances.owner_lock import acquire, release
from skyward.errors import TransportError
from skyward.hookspecs import Cluster, Instance, InstanceState, LaunchRequest, Offer, ProviderFacts, hookimpl
from skyward.model.spec.spec import Spec
from skyward.plan.instances.detached_pool import Detached
from skyward.plan.instances.guardian_duty import (
    Dismissed,
    Duty,
    InstanceEnded,
    InstanceRented,
    Message,
    RegionOpened,
    TakeOver,
)
from tests.full_disk import full_disk
from tests.simulated.loop import VirtualLoop

TTL = 600.0
OFFER = Offer(provider="dictionary", instance_type="small", on_demand_price=1.0, region="r")
CLUSTER = Cluster(pool_id="a1", pool_name="train", spec=Spec(), offer=OFFER, provider="dictionary", nodes=2)
DUTY = Duty(pool_id="a1", pool_name="train", ttl=TTL, lag=60.0)
OPENED = RegionOpened(CLUSTER, None)

state: dict[str, Any] = {}
"""What the cloud has; a provider that was handed over is another object."""


@frozen
class Dictionary:
    """A cloud whose machines cannot end their own bill."""

    name: str = field(default="dictionary")

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name=self.name, ends_own_bill=False)

    @hookimpl
    async def skyward_offers(self) -> Sequence[Offer]:
        return [OFFER]

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest) -> Sequence[Instance]:
        return []

    @hookimpl
    async def skyward_instances(self) -> Sequence[Instance]:
        return [Instance(id=name, node=0, provider=self.name, state=InstanceState.RUNNING) for name in state["there"]]

    @hookimpl
    async def skyward_terminate(self, ids: Sequence[str]) -> None:
        state["asked"].append(asyncio.get_running_loop().time())
        if state["refusals"]:
            state["refusals"] -= 1
            raise state["raises"]
        for name in set(ids) & set(state["there"]):
            state["there"].remove(name)
            state["ended"][name] = asyncio.get_running_loop().time()


class Client:
    """Be the client at the other end: say things, hear the answers, and die."""

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader()
        self.answers: list[bytes] = []
        self.parent = os.getpid()

    def write(self, data: bytes) -> None:
        """Hear an answer."""
        self.answers.append(data[8:])

    async def drain(self) -> None:
        """Have heard it."""

    def close(self) -> None:
        """Be left."""

    def begin(self, provider: object = None, duty: Duty = DUTY) -> asyncio.Task[None]:
        """Start a guardian, with its charge."""
        self.reader.feed_data(charge.charge(provider or Dictionary(), duty))
        loop = asyncio.get_running_loop()
        one = Guardian(self.reader, self, clock=loop.time, parent=lambda: self.parent)  # type: ignore[arg-type]
        return loop.create_task(one.guard())

    def say(self, *messages: Message) -> None:
        """Tell it something."""
        for one in messages:
            self.reader.feed_data(charge.packed(one))

    def die(self) -> None:
        """Be gone, and the socket with it."""
        self.reader.feed_eof()


@pytest.fixture(autouse=True)
def _cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two machines, and a journal of one's own."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    state.clear()
    state.update(there=["i-0", "i-1"], ended={}, asked=[], refusals=0, raises=TransportError("the cloud is down"))


def play(what: Coroutine[Any, Any, None]) -> None:
    """Carry out a scene on virtual time."""
    loop = VirtualLoop(sockets=False)
    try:
        loop.run_until_complete(what)
    finally:
        loop.close()


async def client_dies(*said: Message) -> None:
    """Have a client die after its last messages, and wait for its guardian to end."""
    client = Client()
    guarding = client.begin()
    client.say(OPENED, *said)
    client.die()
    await guarding


RENTED = InstanceRented(("i-0", "i-1"))


def test_a_client_that_gave_everything_back_leaves_nothing_to_do() -> None:
    """The guardian goes at once, and asks the cloud for nothing."""

    async def scene() -> None:
        client = Client()
        guarding = client.begin()
        client.say(OPENED, InstanceRented(("i-0",)), InstanceEnded(("i-0",)), Dismissed())
        await guarding
        assert [b""] * 5 == client.answers
        assert asyncio.get_running_loop().time() < 10.0

    play(scene())
    assert [] == state["asked"]


def test_a_client_that_never_rented_leaves_nothing_to_do() -> None:
    """Nor one that dies before it handed its charge over."""

    async def scene() -> None:
        client = Client()
        guarding = client.begin()
        client.die()
        await guarding
        empty = Client()
        empty.die()
        await Guardian(empty.reader, empty, clock=asyncio.get_running_loop().time).guard()  # type: ignore[arg-type]
        assert [] == empty.answers

    play(scene())
    assert [] == state["asked"]


@pytest.mark.parametrize("rented", [(), ("i-0", "i-1")])
def test_machines_outlive_a_dead_client_by_their_ttl(rented: tuple[str, ...]) -> None:
    """And not by more; also those whose launch the client had no answer to."""

    async def scene() -> None:
        client = Client()
        guarding = client.begin()
        client.say(OPENED, *([InstanceRented(rented)] if rented else ()))
        await asyncio.sleep(1000.0)
        assert 2 == len(state["there"])
        client.die()
        await guarding

    play(scene())
    assert {"i-0", "i-1"} == set(state["ended"])
    assert all(1000.0 + TTL <= at <= 1000.0 + TTL + SPREAD + 5.0 for at in state["ended"].values())


def test_what_a_client_hands_over_is_ended_at_once() -> None:
    """There is no client whose return could be waited for."""

    async def scene() -> None:
        client = Client()
        guarding = client.begin()
        client.say(OPENED, RENTED, TakeOver())
        await asyncio.sleep(1000.0)
        client.die()
        await guarding

    play(scene())
    assert all(at <= 1000.0 + SPREAD + 5.0 for at in state["ended"].values())
    assert [] == state["there"]


def test_a_child_of_a_dead_client_does_not_deceive_it() -> None:
    """The socket is still open, but the parent is another."""

    async def scene() -> None:
        client = Client()
        guarding = client.begin()
        client.say(OPENED)
        await asyncio.sleep(10.0)
        client.parent = 1
        await guarding

    play(scene())
    assert [] == state["there"]


def test_a_cloud_that_is_down_is_asked_again() -> None:
    """Less and less often, until it confirms the end."""
    state["refusals"] = 5
    play(client_dies(RENTED, TakeOver()))
    assert [] == state["there"]
    pauses = [later - before for before, later in zip(state["asked"], state["asked"][1:], strict=False)][:5]
    assert pauses == sorted(pauses)
    assert pauses[-1] > 10.0


def test_a_full_disk_keeps_no_machine() -> None:
    """Neither its log nor the journal can be written: that costs lines, and nothing else."""
    with full_disk():
        play(client_dies(RENTED))
    assert [] == state["there"]


def test_a_log_that_is_no_file_keeps_no_machine(tmp_path: Path) -> None:
    """Opening a named pipe without a reader would block for ever."""
    os.mkfifo(tmp_path / "guardian.log")
    play(client_dies(RENTED, TakeOver()))
    assert [] == state["there"]


def _unreadable() -> None:
    raise ValueError("\ud800")


class Unreadable:
    """What cannot be read, for a reason that cannot be encoded."""

    def __reduce__(self) -> Any:
        return _unreadable, ()


class WordlessError(Exception):
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize("raised", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError(), WordlessError()])
def test_whatever_a_provider_raises_is_tried_again(raised: BaseException) -> None:
    """Its code may leave the whole program, or cancel what it was never given."""
    state.update(refusals=2, raises=raised)
    play(client_dies(RENTED, TakeOver()))
    assert [] == state["there"]


def test_words_that_no_encoding_has_are_not_the_clients_death() -> None:
    """The guardian of a living client goes on guarding, and ends nothing."""

    async def scene() -> None:
        client = Client()
        guarding = client.begin()
        client.reader.feed_data(charge.packed(Unreadable()))
        client.say(OPENED)
        await asyncio.sleep(2 * TTL)
        assert 2 == len(state["there"])
        client.say(Dismissed())
        client.die()
        await guarding

    play(scene())
    assert [] == state["asked"]


def test_a_cloud_that_stays_down_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a day, here an hour; the log says what is left, and what to type."""
    monkeypatch.setattr(guardian, "PATIENCE", 3600.0)
    state["refusals"] = 10**9

    async def scene() -> None:
        await client_dies(RENTED)
        assert 3600.0 <= asyncio.get_running_loop().time() <= 3600.0 + TTL + 600.0

    play(scene())
    [log] = tmp_path.rglob("guardian.log")
    assert "GAVE UP. Still there and billed: i-0, i-1. the cloud is down" in log.read_text()
    assert "sky down a1" in log.read_text()


def test_an_empty_list_is_not_believed_at_once() -> None:
    """What the client asked for last may appear while the guardian looks."""
    state["there"] = []

    async def scene() -> None:
        client = Client()
        guarding = client.begin()
        client.say(OPENED, TakeOver())
        client.die()
        await asyncio.sleep(20.0)
        state["there"].append("i-late")
        await guarding

    play(scene())
    assert ["i-late"] == list(state["ended"])


def test_what_it_cannot_read_is_answered_with_the_reason() -> None:
    """It goes on guarding."""

    async def scene() -> None:
        client = Client()
        guarding = client.begin()
        client.reader.feed_data(charge.framed(b"no pickle"))
        client.say(OPENED, TakeOver())
        client.die()
        await guarding
        assert [b"", True, b"", b""] == [answer if not answer else b"Error" in answer for answer in client.answers]

    play(scene())
    assert [] == state["there"]


def test_a_charge_it_can_do_nothing_with_is_refused() -> None:
    """The client hears why, and has no guardian."""

    async def scene() -> None:
        client = Client()
        await client.begin(provider=7)
        assert [True] == [bool(answer) for answer in client.answers]

    play(scene())


def leased(ends_in: float) -> None:
    """Have a client write down that i-0 is a node which another one may go on with."""
    about = Detached(
        pool_id="a1",
        pool_name="train",
        provider="dictionary",
        machines=("i-0",),
        calls=1,
        hourly_rate=1.0,
        since=time.time(),
        ends_at=time.time() + ends_in,
        runtime="",
        owned=True,
    )
    DETACHED.write(about, None)  # type: ignore[arg-type]


LEASED = evolve(DUTY, lease=3600.0)


def test_a_node_with_a_lease_is_left_alone_until_that_is_over() -> None:
    """What boots beside it ends after `ttl`, as it has no watchdog."""
    leased(3600.0)

    async def scene() -> None:
        client = Client()
        guarding = client.begin(duty=LEASED)
        client.say(OPENED, RENTED)
        client.die()
        await asyncio.sleep(TTL + 60.0)
        assert ["i-0"] == state["there"]
        leased(-1000.0)
        await guarding
        assert [] == state["there"]

    try:
        play(scene())
    finally:
        release("a1", over=True)


def test_a_pool_that_was_attached_is_its_new_clients() -> None:
    """Nothing of it is ended, whatever its dead client had asked for."""
    leased(3600.0)
    assert acquire("a1")

    async def scene() -> None:
        client = Client()
        guarding = client.begin(duty=LEASED)
        client.say(OPENED, RENTED)
        client.die()
        await guarding

    try:
        play(scene())
    finally:
        release("a1", over=True)
    assert ["i-0", "i-1"] == state["there"]


def test_a_pool_of_which_nothing_was_written_down_ends_after_ttl() -> None:
    """No client could go on with it."""

    async def scene() -> None:
        client = Client()
        guarding = client.begin(duty=LEASED)
        client.say(OPENED, RENTED)
        client.die()
        await guarding
        assert TTL <= max(state["ended"].values()) <= TTL + SPREAD + 5.0

    try:
        play(scene())
    finally:
        release("a1", over=True)
    assert [] == state["there"]
