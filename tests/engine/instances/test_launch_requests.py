"""A launch whose answer is lost: what it rented is found by its token, and the same token asks at most once more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError

import pytest

import skyward as sky
from skyward.engine.instances.launch_requests import LOOKS
from skyward.engine.instances.regions import PROVIDER_TIMEOUT
from skyward.hookspecs import Instance, LaunchRequest, hookimpl
from skyward.testing import ListingLag
from tests.simulated.engine import SimulatedEngine
from tests.simulated.pool import compute
from tests.simulated.provider import ALWAYS, Fails, Hangs, ScriptedCloud


def tokens(cloud: ScriptedCloud) -> int:
    """Count the requests that were not the same."""
    return len({request.token for request in cloud.requests})


@pytest.mark.parametrize(
    "error",
    [ConnectionResetError, asyncio.TimeoutError, lambda: sky.ProvisionError("500"), lambda: sky.OfferError("503")],
    ids=["cut", "timeout", "500", "503"],
)
def test_what_a_lost_answer_rented_is_found(engine: SimulatedEngine, error: Callable[[], Exception]) -> None:
    """By its token, at the first look, and nothing is asked for twice."""
    cloud = ScriptedCloud(Fails("launch", error, done=True))
    pool, _ = compute(cloud, nodes=2)
    with pool:
        assert 2 == pool.current_nodes()
    assert (1, 2) == (len(cloud.requests), len(cloud.rows))
    assert cloud.times("instances")[0] <= LOOKS[0] * 1.2


def test_a_list_that_lags_is_looked_at_again(engine: SimulatedEngine) -> None:
    """Three times, before anything is asked for again."""
    cloud = ScriptedCloud(Fails("launch", done=True), ListingLag(seconds=sum(LOOKS[:2]) * 1.2))
    pool, _ = compute(cloud)
    with pool:
        pass
    assert (1, 1) == (len(cloud.requests), len(cloud.rows))


def test_a_list_that_fails_is_looked_at_again(engine: SimulatedEngine) -> None:
    """A cloud that cannot answer a launch may not answer a list either."""
    cloud = ScriptedCloud(Fails("launch", done=True), Fails("instances", times=2))
    pool, _ = compute(cloud)
    with pool:
        pass
    assert (1, 1) == (len(cloud.requests), len(cloud.rows))


@pytest.mark.parametrize("done", [True, False])
def test_the_same_token_asks_once_more_where_nothing_is_found(engine: SimulatedEngine, done: bool) -> None:
    """Whether or not the first request rented anything, there is one machine in the end."""
    cloud = ScriptedCloud(Fails("launch", done=done), ListingLag(seconds=sum(LOOKS) * 1.2))
    pool, _ = compute(cloud)
    with pool:
        assert 1 == pool.current_nodes()
    assert (2, 1) == (len(cloud.requests), tokens(cloud))
    assert 1 == len(cloud.rows)


@pytest.mark.parametrize("lag", [0.1, 20.0])
def test_what_is_lost_twice_is_tried_with_another_token(engine: SimulatedEngine, lag: float) -> None:
    """What the first one rented is listed sooner or later, and ended as an orphan."""
    lost = Fails("launch", lambda: sky.ProvisionError("500"), skip=1, times=2, done=True)
    cloud = ScriptedCloud(Fails("launch"), lost, ListingLag(seconds=lag))
    pool, _ = compute(cloud, provision_retry_delay=1.0)
    with pool:
        assert 1 == pool.current_nodes()
        engine.until(lambda: len(cloud.there) == 1)
        assert 1 == pool.current_nodes()
    assert [] == cloud.there
    assert len({row.request.token for row in cloud.rows}) == tokens(cloud) >= 2


@pytest.mark.parametrize("lag", [0.1, 1.0, 4.0])
def test_what_a_failing_pool_has_rented_unseen_is_waited_for(engine: SimulatedEngine, lag: float) -> None:
    """The second answer is lost as well, the pool gives up at once, and lists lag behind: the machine is ended."""
    lost = Fails("launch", skip=1, done=True)
    cloud = ScriptedCloud(Fails("launch"), lost, ListingLag(seconds=lag))
    pool, _ = compute(cloud, max_provision_attempts=1)
    with pytest.raises(sky.PluginError, match="the line is cut"):
        pool.open()
    assert (1, []) == (len(cloud.rows), cloud.there)


@pytest.mark.parametrize("lag", [0.1, 1.0, 4.0])
def test_what_an_interrupted_launch_has_rented_is_waited_for(engine: SimulatedEngine, lag: float) -> None:
    """The request was sent, the answer was not heard, and the machine is ended."""

    class Late(ScriptedCloud):
        @hookimpl
        async def skyward_launch(self, request: LaunchRequest, infra: str | None) -> Sequence[Instance]:
            await super().skyward_launch(request, infra)
            pool.break_off()
            return await asyncio.Event().wait()  # type: ignore[return-value]  # never

    cloud = Late(ListingLag(seconds=lag))
    pool, _ = compute(cloud)
    with pytest.raises(CancelledError):
        pool.open()
    assert (1, []) == (len(cloud.rows), cloud.there)


def test_a_silent_launch_is_waited_for_no_longer_than_the_option_says(engine: SimulatedEngine) -> None:
    """`provision_timeout` is the limit of the call, and of the one that repeats it."""
    cloud = ScriptedCloud(Hangs("launch"))
    pool, _ = compute(cloud, provision_timeout=30.0)
    with pool:
        pass
    first, second = cloud.times("launch")
    assert 30.0 <= second - first <= 30.0 + 1.2 * sum(LOOKS)
    assert 1 == tokens(cloud)


def test_a_cloud_that_never_answers_a_launch_is_given_up(engine: SimulatedEngine) -> None:
    """The error names provider, hook and limit."""
    cloud = ScriptedCloud(Hangs("launch", times=ALWAYS))
    pool, _ = compute(cloud, provision_timeout=30.0, max_provision_attempts=1, allocation="spot")
    with pytest.raises(sky.ProvisionError, match="cloud gave no answer to skyward_launch within 30 s"):
        pool.open()
    assert (2, 1) == (len(cloud.requests), tokens(cloud))


def test_a_silent_launch_has_a_limit_where_nothing_says_one(engine: SimulatedEngine) -> None:
    """`PROVIDER_TIMEOUT`."""
    cloud = ScriptedCloud(Hangs("launch"))
    pool, _ = compute(cloud)
    with pool:
        pass
    first, second = cloud.times("launch")
    assert PROVIDER_TIMEOUT <= second - first <= PROVIDER_TIMEOUT + 1.2 * sum(LOOKS)


@pytest.mark.parametrize(
    "error", [sky.CapacityError("No."), sky.QuotaError("No."), sky.CredentialsError("No."), sky.ConfigError("No.")]
)
def test_an_answer_is_not_looked_for_where_there_is_one(engine: SimulatedEngine, error: Exception) -> None:
    """What refuses rents nothing."""
    cloud = ScriptedCloud(Fails("launch", lambda: error, times=ALWAYS))
    pool, _ = compute(cloud, max_provision_attempts=1, allocation="on-demand")
    with pytest.raises(type(error), match=r"No\."):
        pool.open()
    assert 1 == len(cloud.requests)
    # At the end only, where what is left is ended.
    assert 1 >= len(cloud.times("instances"))


def test_a_bug_of_a_plugin_is_not_repeated(engine: SimulatedEngine) -> None:
    """What it rented all the same is found, and otherwise the pool says whose bug it is."""
    cloud = ScriptedCloud(Fails("launch", lambda: KeyError("id"), times=ALWAYS))
    pool, _ = compute(cloud)
    with pytest.raises(sky.PluginError, match="'cloud' failed in skyward_launch: KeyError"):
        pool.open()
    assert 1 == len(cloud.requests)
    found = ScriptedCloud(Fails("launch", lambda: KeyError("id"), done=True))
    pool, _ = compute(found)
    with pool:
        assert 1 == pool.current_nodes()
    assert [] == found.there
