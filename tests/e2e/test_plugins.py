"""Every hook of a plugin works on Local, in the order of `plugins=[...]`, and answers for its own errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

import skyward as sky
from skyward.hookspecs import hookimpl
from skyward.model.instances.cluster import Cluster, LaunchCommand, LaunchContext
from skyward.model.instances.instance import InstanceInfo
from skyward.model.instances.machine import Instance, LaunchRequest, LocalAddress, ProviderFacts
from skyward.model.instances.offer import Offer
from skyward.model.spec.image import Image
from skyward.model.spec.spec import Spec


def _marked(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: f"{name}({fn(*args, **kwargs)})"

    return decorate


def test_decorators_nest_first_outermost() -> None:
    """Each call runs through all of them."""
    plugins = [sky.Plugin.create(name).with_decorator(_marked(name)) for name in ("outer", "inner")]
    with sky.Compute(console="silent", plugins=plugins) as pool:
        assert pool.map(lambda x: x, [1, 2]) == ["outer(inner(1))", "outer(inner(2))"]


@pytest.mark.slow
def test_image_transform_and_launcher_reach_the_worker() -> None:
    """Folded in order: the later plugin sees what the earlier made."""

    def transform(image: Image, cluster: Cluster) -> Image:
        return evolve(image, env={**image.env, "BY": image.env.get("BY", "") + cluster.pool_name})

    def launcher(command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
        return evolve(command, env={**command.env, "PLACE": f"{context.node}.{context.rank}"})

    one = sky.Plugin.create("one").with_image_transform(transform)
    two = sky.Plugin.create("two").with_image_transform(transform).with_launcher(launcher)
    with sky.Compute(nodes=2, console="silent", plugins=[one, two]) as pool:
        read = sky.function(lambda: (os.environ["BY"], os.environ["PLACE"]))
        assert read() @ pool == [("poolpool", "0.0"), ("poolpool", "1.0")]


@pytest.mark.slow
def test_around_process_is_entered_and_left_in_each_worker(tmp_path: Path) -> None:
    """Also in a worker that stands in for a dead one."""
    log = str(tmp_path / "log")

    @contextmanager
    def around(info: InstanceInfo) -> Iterator[None]:
        _write(log, f"enter {info.node}")
        yield
        _write(log, f"leave {info.node}")

    plugin = sky.Plugin.create("around").with_around_process(around)
    with sky.Compute(console="silent", plugins=[plugin]) as pool:
        with pytest.raises(sky.WorkerDiedError):
            sky.function(os._exit)(1) >> pool
        assert sky.function(lambda: 1)() >> pool == 1
    assert Path(log).read_text().split("\n")[:-1] == ["enter 0", "enter 0", "leave 0"]


def _write(path: str, line: str) -> None:
    with open(path, "a") as file:
        file.write(line + "\n")


@pytest.mark.slow
def test_around_app_sets_the_environment_of_all_workers(tmp_path: Path) -> None:
    """It is entered once a node, and left at the end."""
    log = str(tmp_path / "log")

    @contextmanager
    def around(info: InstanceInfo) -> Iterator[None]:
        os.environ["FROM_APP"] = f"node {info.node}"
        _write(log, "enter")
        yield
        _write(log, "leave")

    plugin = sky.Plugin.create("app").with_around_app(around)
    with sky.Compute(per_node=2, console="silent", plugins=[plugin]) as pool:
        assert sky.function(lambda: os.environ["FROM_APP"])() @ pool == ["node 0", "node 0"]
    assert Path(log).read_text().split() == ["enter", "leave"]


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["enters", "is there"])
def test_around_app_is_left_when_the_client_is_killed(tmp_path: Path, moment: str) -> None:
    """What it changed on the machine is changed back, however far it had come; no worker starts any more."""
    log = tmp_path / "log"
    log.touch()
    slow = 1.0 if moment == "enters" else 0.0
    script = textwrap.dedent(f"""
        import contextlib, time
        import skyward as sky

        def write(line):
            with open({str(log)!r}, "a") as file:
                file.write(line + "\\n")

        @contextlib.contextmanager
        def around(info):
            write("enters")
            time.sleep({slow})
            yield
            time.sleep(0.3)
            write("left")

        @contextlib.contextmanager
        def process(info):
            write("is there")
            yield

        plugin = sky.Plugin.create("app").with_around_app(around).with_around_process(process)
        with sky.Compute(console="silent", logging=False, plugins=[plugin]):
            time.sleep(300)
    """)
    client = subprocess.Popen([sys.executable, "-c", script])
    try:
        _until(lambda: moment in log.read_text())
    finally:
        client.kill()
        client.wait()
    _until(lambda: "left" in log.read_text())
    assert (["enters", "left"] if slow else ["enters", "is there", "left"]) == log.read_text().splitlines()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("error", [None, ValueError("left by it")], ids=["well", "badly"])
def test_around_client_spans_the_pools_life(error: Exception | None) -> None:
    """It may use the pool, from when its nodes are ready until they end, however the block is left."""
    seen: list[Any] = []

    @contextmanager
    def around(pool: sky.Pool, cluster: Cluster) -> Iterator[None]:
        seen.append(sky.function(lambda: "entered")() @ pool)
        yield
        seen.append(sky.function(lambda: "left")() >> pool)

    pool = sky.Compute(nodes=2, console="silent", plugins=[sky.Plugin.create("c").with_around_client(around)])
    pool.open()
    seen.append("inside")
    pool.close(error)
    assert seen == [["entered", "entered"], "inside", "left"]


def test_class_plugin_has_hooks_as_methods() -> None:
    """Marked with `hookimpl`, taking the arguments they name."""

    class Tagger:
        name = "tagger"

        @hookimpl
        def skyward_transform(self, image: Image) -> Image:
            return evolve(image, env={"TAG": "class"})

    with sky.Compute(console="silent", plugins=[Tagger()]) as pool:
        assert sky.function(lambda: os.environ["TAG"])() >> pool == "class"


def _raise(*_: Any) -> Any:
    raise OSError("broken inside")


@pytest.mark.parametrize(
    ("plugin", "hook"),
    [
        (sky.Plugin.create("bad").with_validate(_raise), "validate"),
        (sky.Plugin.create("bad").with_topology(_raise), "topology"),
        (sky.Plugin.create("bad").with_image_transform(_raise), "transform"),
        (sky.Plugin.create("bad").with_bootstrap(_raise), "bootstrap"),
        (sky.Plugin.create("bad").with_launcher(_raise), "launcher"),
        (sky.Plugin.create("bad").with_around_app(_raise), "around_app"),
        (sky.Plugin.create("bad").with_around_process(_raise), "around_process"),
        (sky.Plugin.create("bad").with_around_client(_raise), "around_client"),
    ],
)
def test_hook_that_raises_names_its_plugin(plugin: sky.Plugin, hook: str, tmp_path: Path) -> None:
    """The pool is not opened, and nothing of it is left."""
    pool = sky.Compute(console="silent", plugins=[plugin])
    with pytest.raises(sky.PluginError, match=f"'bad' failed in {hook}.*broken inside"), pool:
        raise AssertionError
    assert not pool.is_active


@pytest.mark.slow
def test_decorator_that_raises_fails_the_call() -> None:
    """And the pool goes on."""
    with sky.Compute(console="silent", plugins=[sky.Plugin.create("bad").with_decorator(_raise)]) as pool:
        for _ in range(2):
            with pytest.raises(sky.PluginError, match="'bad' failed in decorate"):
                sky.function(lambda: 1)() >> pool


@frozen(eq=False)
class Sham:
    """A provider that rents this machine, and fails as the test says."""

    log: list[str]
    fails: dict[str, Any]

    def _do(self, what: str) -> None:
        self.log.append(what)
        left = self.fails.get(what, 0)
        if left:
            self.fails[what] = left - 1
            raise sky.CapacityError(f"no {what} today")

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="sham", ends_own_bill=True)

    @hookimpl
    async def skyward_preflight(self, spec: Spec) -> None:
        self._do("preflight")

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        self._do("offers")
        return [Offer(provider="sham", instance_type="small", on_demand_price=1.0)]

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> str:
        self._do("open")
        return tempfile.mkdtemp(prefix="sham")

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: str) -> Sequence[Instance]:
        self._do("launch")
        return [
            Instance(id=f"i{node}", node=node, provider="sham", address=LocalAddress(f"{infra}/{node}"))
            for node in request.nodes
        ]

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: str) -> Sequence[Instance]:
        return []

    @hookimpl
    async def skyward_terminate(self, infra: str, ids: Sequence[str]) -> None:
        self._do("terminate")

    @hookimpl
    async def skyward_release(self, infra: str) -> None:
        self._do("release")
        shutil.rmtree(infra)


def test_provider_is_asked_in_order() -> None:
    """Whatever was opened is released, whatever was launched is terminated."""
    sham = Sham([], {})
    with sky.Compute(provider=sham, console="silent") as pool:
        assert sky.function(lambda: sky.instance_info().provider)() >> pool == "sham"
    assert sham.log == ["preflight", "offers", "open", "launch", "terminate", "release"]


def test_launch_that_fails_is_tried_again() -> None:
    """As often as `max_provision_attempts` says."""
    sham = Sham([], {"launch": 2})
    with sky.Compute(provider=sham, console="silent", max_provision_attempts=3, provision_retry_delay=0.01) as pool:
        assert sky.function(lambda: 1)() >> pool == 1
    assert sham.log.count("launch") == 3


@pytest.mark.slow
def test_launch_that_goes_on_failing_is_one_error() -> None:
    """And what was set up is released."""
    sham = Sham([], {"launch": 99})
    with pytest.raises(sky.CapacityError, match="no launch today"):
        sky.Compute(provider=sham, console="silent", max_provision_attempts=2).open()
    assert sham.log.count("launch") == 2
    assert sham.log[-1] == "release"


def test_preflight_that_fails_launches_nothing() -> None:
    """Not a dollar is spent."""
    sham = Sham([], {"preflight": 1})
    with pytest.raises(sky.CapacityError, match="no preflight today"):
        sky.Compute(provider=sham, console="silent").open()
    assert sham.log == ["preflight"]


@pytest.mark.slow
def test_next_provider_is_tried_when_one_fails() -> None:
    """Each says why, if all do."""
    bad, good = Sham([], {"open": 9}), Sham([], {})
    settings: Any = {"console": "silent", "selection": "first", "provision_retry_delay": 0.0}
    with sky.Compute(provider=[bad, good], **settings):
        assert good.log[-1] == "launch"
    with pytest.raises(sky.AllProvidersFailedError, match="no open today") as caught:
        sky.Compute(provider=[Sham([], {"open": 9}), Sham([], {"open": 9})], **settings).open()
    assert [provider for provider, _ in caught.value.reasons] == ["sham", "sham"]


@pytest.mark.slow
def test_instance_that_cannot_be_terminated_is_reported() -> None:
    """By its id, as an error event."""
    errors: list[sky.Error] = []
    sham = Sham([], {"terminate": 99})
    with sky.Compute(provider=sham, console="silent", shutdown_timeout=0.5).on(sky.Error, errors.append):
        pass
    assert "i0" in errors[0].message
    assert "may still exist" in errors[0].message
