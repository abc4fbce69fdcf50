"""How a guardian ends machines: by the pool's list, by that of all of ours, and without any."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from skyward.engine.guardian.guardian_termination import GuardianTermination
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import TransportError
from skyward.hookspecs import Cluster, Instance, LaunchRequest, hookimpl
from skyward.model.spec.spec import Spec
from skyward.plan.instances.guardian_duty import Duty, InstanceRented, RegionOpened, take
from skyward.testing import Rehearsal, TerminateFails
from skyward.testing.market import offers


class Unlisted(Rehearsal):
    """A cloud whose list of a pool's machines fails."""

    @hookimpl
    async def skyward_instances(self, cluster: Cluster) -> Sequence[Instance]:
        """Fail."""
        raise TransportError("The list of the pool's machines cannot be had.")


class Careless(Rehearsal):
    """A cloud whose list of a pool's machines has those of all pools."""

    @hookimpl
    async def skyward_instances(self, cluster: Cluster) -> Sequence[Instance]:
        """List all."""
        return await self.skyward_owned()


class Blind(Unlisted):
    """A cloud all of whose lists fail."""

    @hookimpl
    async def skyward_owned(self) -> Sequence[Instance]:
        """Fail."""
        raise ValueError("nothing is listed")


@pytest.fixture
def books(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Give a directory for a cloud's books, and one for our state."""
    monkeypatch.setenv("SKYWARD_STATE", str(tmp_path))
    directory = tempfile.mkdtemp(prefix="sky-", dir="/tmp")
    yield directory
    Rehearsal(directory=directory).clear()
    shutil.rmtree(directory, ignore_errors=True)


async def rent(cloud: Rehearsal, pool_id: str) -> tuple[Duty, tuple[str, ...]]:
    """Rent two machines for a pool, and return what its guardian hears before that, and their ids."""
    offer = offers()[0]
    cluster = Cluster(pool_id=pool_id, pool_name="train", spec=Spec(), offer=offer, provider="rehearsal", nodes=2)
    duty = Duty(pool_id=pool_id, pool_name="train", ttl=1.0, lag=0.0)
    rented = await cloud.skyward_launch(LaunchRequest(cluster=cluster, nodes=(0, 1), token=pool_id))
    return take(duty, RegionOpened(cluster, None)), tuple(one.id for one in rented)


def left(cloud: Rehearsal) -> set[str]:
    """List what is billed."""
    return {machine.id for machine in cloud.machines()}


@pytest.mark.parametrize("kind", [Rehearsal, Unlisted, Careless])
def test_only_the_pools_own_machines_are_ended(books: str, kind: type[Rehearsal]) -> None:
    """Also where only the list of all machines of ours can be had; it is over after two empty lists."""

    async def scenario() -> list[bool]:
        cloud = kind(directory=books, ends_own_bill=False)
        (duty, _), (_, others) = await rent(cloud, "a1"), await rent(cloud, "b2")
        ending = GuardianTermination(ProviderHandle(cloud), duty)
        attempts = [await ending.attempt(1.0) for _ in range(3)]
        assert set(others) == left(cloud)
        ending.close()
        return attempts

    assert [False, False, True] == asyncio.run(scenario())


def test_what_the_client_knew_of_is_ended_without_a_list(books: str, tmp_path: Path) -> None:
    """It is not over then: it is unknown whether there are others."""

    async def scenario() -> list[bool]:
        cloud = Blind(directory=books, ends_own_bill=False)
        duty, ids = await rent(cloud, "a1")
        ending = GuardianTermination(ProviderHandle(cloud), take(duty, InstanceRented(ids)))
        attempts = [await ending.attempt(1.0) for _ in range(3)]
        assert (set(), 3) == (left(cloud), ending.failures)
        ending.close()
        return attempts

    assert [False, False, False] == asyncio.run(scenario())
    assert "ValueError: nothing is listed" in (tmp_path / "guardian.log").read_text()


def test_giving_up_says_what_is_left(books: str, tmp_path: Path) -> None:
    """The ids, the reason, and what to type; only the user may read it."""

    async def scenario() -> tuple[str, ...]:
        cloud = Rehearsal(directory=books, ends_own_bill=False, faults=[TerminateFails(times=99)])
        duty, ids = await rent(cloud, "a1")
        ending = GuardianTermination(ProviderHandle(cloud), duty)
        assert not await ending.attempt(1.0)
        assert not await ending.attempt(2.0)
        ending.give_up()
        ending.close()
        return ids

    ids = sorted(asyncio.run(scenario()))
    log = tmp_path / "guardian.log"
    tried, gave_up = log.read_text().splitlines()
    assert "which is tried again: The rehearsal cloud answered 500 Internal Server Error" in tried
    assert f"pool a1: GAVE UP. Still there and billed: {', '.join(ids)}." in gave_up
    assert gave_up.endswith("To end them, type: sky down a1")
    assert 0o600 == log.stat().st_mode & 0o777
