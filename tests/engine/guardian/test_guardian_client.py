"""The client's side of its guardians, which die and refuse as scripted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from skyward.engine.guardian import guardian_messages
from skyward.engine.guardian.guardian_client import STARTS, GuardianClient
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import PluginError, ProvisionError
from skyward.plan.instances.guardian_duty import (
    Dismissed,
    Duty,
    InstanceEnded,
    InstanceRented,
    Message,
    Opening,
    RegionOpened,
    TakeOver,
    take,
)
from tests.engine.guardian.test_guardian_process import CLUSTER, Dictionary, play


class Link:
    """A guardian that keeps what it hears, until it dies."""

    def __init__(self, data: bytes, refuses: type | None) -> None:
        _, inner = guardian_messages.message(data[8:])
        _, self.duty = guardian_messages.charged(inner)
        self.pid = 7
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.ended: list[float] = []
        self.left = False
        self._refuses = refuses

    def send(self, message: Message) -> None:
        """Record something."""
        self.duty = take(self.duty, message)

    async def ask(self, data: bytes) -> str:
        """Record something, and confirm it, or refuse."""
        message = guardian_messages.message(data[8:])
        if self._refuses and isinstance(message, self._refuses):
            return "it cannot be opened here"
        self.send(message)
        return ""

    async def end(self, patience: float) -> None:
        """Record that it was ended."""
        self.ended.append(patience)

    def leave(self) -> None:
        """Record that it was left running."""
        self.left = True

    def die(self) -> None:
        """Be dead."""
        self.lost.set_result("guardian (process 7) died")


class Guardians:
    """Start guardians as scripted, and keep them."""

    def __init__(self, *starts: Exception, refuses: type | None = None) -> None:
        self.links: list[Link] = []
        self.errors: list[str] = []
        self._starts = [*starts]
        self._refuses = refuses

    async def start(self, pool_id: str, data: bytes) -> Any:
        """Start one, or fail as the script says."""
        assert pool_id == CLUSTER.pool_id
        if self._starts:
            raise self._starts.pop(0)
        self.links.append(Link(data, self._refuses))
        return self.links[-1]

    def error(self, message: str, *, fatal: bool) -> None:
        """Keep what is reported."""
        self.errors.append(message)

    def guarding(self) -> GuardianClient:
        """Make what keeps one."""
        return GuardianClient(ProviderHandle(Dictionary()), CLUSTER, self, start=self.start)  # type: ignore[arg-type]


async def _set_up(guarding: GuardianClient) -> None:
    await guarding.opening(CLUSTER)
    await guarding.opened(CLUSTER, None)


def scene(play_it: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Play it at once."""
    play(play_it())


def test_it_knows_of_a_region_before_anything_is_set_up_there() -> None:
    """And of machines as they come and go; what is known is not said twice."""

    @scene
    async def _() -> None:
        guardians = Guardians()
        guarding = guardians.guarding()
        await guarding.opening(CLUSTER)
        [link] = guardians.links
        assert 1 == len(link.duty.opening)
        await guarding.opened(CLUSTER, "infra")
        await guarding.opened(CLUSTER, "ignored")
        guarding.rented(["i-0", "i-1"])
        guarding.ended(["i-1"])
        assert ["infra"] == [infra for _, infra in link.duty.regions]
        assert {"i-0"} == link.duty.machines
        await guarding.dismiss()
        assert (True, False) == (link.duty.dismissed, link.left)
        assert 1 == len(link.ended)


def test_a_guardian_that_dies_is_followed_by_one_that_knows_all() -> None:
    """Also what was told while there was none."""

    @scene
    async def _() -> None:
        guardians = Guardians()
        guarding = guardians.guarding()
        await guarding.opened(CLUSTER, "infra")
        guardians.links[0].die()
        guarding.rented(["i-0"])
        await asyncio.sleep(1.0)
        guarding.rented(["i-1"])
        first, second = guardians.links
        assert [0.0] == first.ended
        assert ({"i-0", "i-1"}, ["infra"]) == (second.duty.machines, [infra for _, infra in second.duty.regions])
        assert ["get another" in error for error in guardians.errors] == [True]
        await guarding.dismiss()


def test_guardians_that_die_one_after_the_other_are_an_end_of_renting() -> None:
    """The error says how many, and what to type if this process dies."""

    @scene
    async def _() -> None:
        guardians = Guardians(*[OSError("no process")] * STARTS)
        guarding = guardians.guarding()
        with pytest.raises(
            ProvisionError, match=rf"no more are rented: no process, as did {STARTS - 1} before it.*down a1"
        ):
            await guarding.opening(CLUSTER)
        assert STARTS == len(guardians.errors)
        with pytest.raises(ProvisionError, match="no more are rented"):
            await guarding.opened(CLUSTER, None)
        await guarding.dismiss()


def test_fewer_than_that_are_got_over() -> None:
    """The last one that starts does."""

    @scene
    async def _() -> None:
        guardians = Guardians(*[OSError("no process")] * (STARTS - 1))
        guarding = guardians.guarding()
        await guarding.opening(CLUSTER)
        assert 1 == len(guardians.links)
        await guarding.dismiss()


def test_a_provider_that_cannot_be_handed_over_is_to_blame() -> None:
    """Nothing is tried again."""

    @scene
    async def _() -> None:
        guardians = Guardians(PluginError("it has a lock"))
        guarding = guardians.guarding()
        with pytest.raises(PluginError, match=r"'dictionary' cannot be handed to the guardian .* it has a lock"):
            await guarding.opening(CLUSTER)
        assert [] == guardians.links
        await guarding.dismiss()


@pytest.mark.parametrize("refused", [Opening, RegionOpened])
def test_what_a_guardian_cannot_open_is_not_set_up(refused: type) -> None:
    """The provider is to blame; the guardian stays."""

    @scene
    async def _() -> None:
        guardians = Guardians(refuses=refused)
        guarding = guardians.guarding()
        with pytest.raises(PluginError, match="it cannot be opened here"):
            await _set_up(guarding)
        assert 1 == len(guardians.links)
        await guarding.dismiss()


def test_shared_things_that_cannot_be_pickled_are_told() -> None:
    """Before a machine is rented that would need them."""

    @scene
    async def _() -> None:
        guarding = Guardians().guarding()
        with pytest.raises(PluginError, match="what skyward_open returned cannot be pickled"):
            await guarding.opened(CLUSTER, asyncio.get_running_loop())
        await guarding.dismiss()


def test_what_could_not_be_given_back_is_left_to_it() -> None:
    """It goes on alone, and its process is named."""

    @scene
    async def _() -> None:
        guardians = Guardians()
        guarding = guardians.guarding()
        await guarding.opened(CLUSTER, None)
        guarding.rented(["i-0"])
        assert 7 == await guarding.hand_over()
        [link] = guardians.links
        assert (True, True, []) == (link.left, link.duty.at_once, link.ended)


def test_messages_are_what_a_guardian_takes() -> None:
    """Each has its place in the duty."""
    duty = Duty(pool_id="a1", pool_name="train", ttl=1.0)
    for message in (
        Opening(CLUSTER),
        RegionOpened(CLUSTER, 1),
        InstanceRented(("i",)),
        InstanceEnded(("i",)),
        TakeOver(),
        Dismissed(),
    ):
        assert duty != (duty := take(duty, guardian_messages.message(guardian_messages.packed(message)[8:])))
