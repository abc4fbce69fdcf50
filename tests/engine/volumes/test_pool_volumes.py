"""Volumes are refused before anything is rented, and reach each node with keys as they are then."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from attrs import frozen

import skyward as sky
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.engine.volumes.pool_volumes import REMOVED_WITHIN, PoolVolumes
from skyward.hookspecs import BucketStorage, Instance, Offer, ProviderFacts, hookimpl
from skyward.model.spec.spec import Spec
from tests.simulated.engine import SimulatedEngine


@frozen
class Cloud:
    """A provider with an object store of its own, or without."""

    store: Any = None

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="cloud", ends_own_bill=True)

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> list[Offer]:
        return []

    @hookimpl
    async def skyward_launch(self, request: Any, infra: Any) -> list[Instance]:
        return []

    @hookimpl
    async def skyward_instances(self, cluster: Any, infra: Any) -> list[Instance]:
        return []

    @hookimpl
    async def skyward_terminate(self, cluster: Any, infra: Any, ids: Any) -> None:
        return

    @hookimpl
    async def skyward_volume_storage(self, spec: Spec, region: str | None) -> Any:
        if self.store == "in the region":
            return BucketStorage(endpoint=f"https://{region}.example.org", access_key="id", secret_key="hidden")
        return self.store


@frozen
class Store:
    """Stand for a `sky.Storage`, whose functions are asked in threads."""

    secret_key: Any
    access_key: str = "id"
    endpoint: str = "https://s3.example.org"


def volumes(engine: SimulatedEngine, provider: Any, *given: Any) -> PoolVolumes:
    """Return the volumes of a pool."""
    return PoolVolumes(engine, ProviderHandle(provider), Spec(provider=provider, volumes=given), "train", 60.0)


def check(engine: SimulatedEngine, provider: Any, *given: Any) -> list[dict[str, Any]]:
    """Check volumes as when a pool is opened, and return what a node would be asked for."""

    async def body() -> list[dict[str, Any]]:
        made = volumes(engine, provider, *given)
        await made.check("here")
        return await made._orders()

    found: list[dict[str, Any]] = engine.run(body())
    return found


VOLUME = sky.Volume("my-data", "/data", prefix="sets")


def test_the_providers_own_store_is_taken(engine: SimulatedEngine) -> None:
    """That of the region of its machines."""
    (order,) = check(engine, Cloud("in the region"), VOLUME)
    assert ("https://here.example.org", "my-data", "sets/", "/data") == (
        order["endpoint"],
        order["bucket"],
        order["prefix"],
        order["mount"],
    )


def test_a_machine_may_have_a_role_of_its_own(engine: SimulatedEngine) -> None:
    """Then no keys are sent."""
    (order,) = check(engine, Cloud(BucketStorage(endpoint="https://s3.example.org")), VOLUME)
    assert (None, None) == (order["access_key"], order["secret_key"])


def test_where_nothing_says_where_a_bucket_is_it_is_refused(engine: SimulatedEngine) -> None:
    """With what to write."""
    with pytest.raises(
        sky.ConfigError, match=r"'my-data/sets/' at /data is: .*cloud has no object store.* Write storage="
    ):
        check(engine, Cloud(), VOLUME)


def test_a_provider_that_returns_something_else_is_blamed(engine: SimulatedEngine) -> None:
    """It is a bug of the plugin."""
    with pytest.raises(sky.PluginError, match="must return BucketStorage, not str"):
        check(engine, Cloud("https://s3.example.org"), VOLUME)


def test_a_folder_is_no_store_of_another_machine(engine: SimulatedEngine, tmp_path: Path) -> None:
    """It is on this one."""
    with pytest.raises(sky.ConfigError, match="is a folder of this machine, which machines of cloud do not have"):
        check(engine, Cloud(), sky.Volume("my-data", "/data", storage=tmp_path))


def test_a_pool_without_buckets_asks_nothing(engine: SimulatedEngine) -> None:
    """Disks are the provider's."""
    assert [] == check(engine, Cloud(), sky.Disk("scratch"))


def test_keys_are_asked_for_whenever_a_node_starts(engine: SimulatedEngine) -> None:
    """They may have ended meanwhile."""
    asked: list[str] = []

    async def key() -> str:
        asked.append("again")
        return f"key {len(asked)}"

    (order,) = check(engine, Cloud(), sky.Volume("my-data", "/data", storage=Store(secret_key=key)))
    assert "key 2" == order["secret_key"]


class ScriptedNode:
    """A node that answers questions about its volumes as a test says; None is no answer."""

    def __init__(self, engine: SimulatedEngine, answers: dict[str, dict[str, Any] | None]) -> None:
        self.index, self.where, self.instance = 0, "node 0", Instance(id="i-1", node=0, provider="cloud")
        self.link, self.leaving = object(), False
        self.asked: list[str] = []
        self._answers: dict[str, dict[str, Any] | None] = {"open": {"notes": []}, "workers": {}, "close": {}, **answers}
        self._engine = engine

    async def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        """Answer a question."""
        do = question.get("volumes", {"do": "workers"})["do"]
        self.asked.append(do)
        said = self._answers[do]
        if said is None:
            await self._engine.loop.create_future()
        assert said is not None
        return said


FLUSHED = {"unwritten": {}, "why": "", "moved": 0, "errors": 0}
STORE = BucketStorage(endpoint="https://s3.example.org", access_key="id", secret_key="hidden")


def left(engine: SimulatedEngine, **answers: dict[str, Any] | None) -> tuple[ScriptedNode, list[str]]:
    """Attach volumes to a node and detach them; return it, and what may not be in the bucket."""
    node = ScriptedNode(engine, answers)

    async def body() -> list[str]:
        made = volumes(engine, Cloud(STORE), sky.Volume("my-data", "/data", read_only=False))
        await made.attach(cast("Any", node))
        await made.detach(cast("Any", node), 5.0)
        return made.unwritten

    return node, engine.run(body())


@pytest.mark.parametrize(
    ("closing", "why"),
    [
        (None, f"it took longer than {REMOVED_WITHIN:g} s"),
        ({"failed": "OSError: the folder is busy"}, "folder is busy"),
    ],
)
def test_what_is_not_removed_after_all_was_written_is_a_warning(
    engine: SimulatedEngine, caplog: pytest.LogCaptureFixture, closing: dict[str, Any] | None, why: str
) -> None:
    """It is in the bucket, so that no machine is kept for it; and the wait is bounded."""
    began = engine.now
    node, unwritten = left(engine, flush=FLUSHED, close=closing)
    assert [] == unwritten
    assert ["open", "workers", "flush", "close"] == node.asked
    assert engine.now - began <= REMOVED_WITHIN + 1
    (record,) = caplog.records
    assert ("WARNING", True) == (record.levelname, why in record.getMessage())


def test_nothing_is_removed_that_may_not_be_in_the_bucket(
    engine: SimulatedEngine, caplog: pytest.LogCaptureFixture
) -> None:
    """A flush that fails is an error of the pool, and the files stay."""
    node, unwritten = left(engine, flush={"failed": "OSError: rclone is gone"})
    assert ["What tasks wrote to volumes on node 0 may not be in the bucket: OSError: rclone is gone"] == unwritten
    assert "close" not in node.asked
    assert "ERROR" in [record.levelname for record in caplog.records]
