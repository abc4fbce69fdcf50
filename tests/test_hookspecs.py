"""
Each hook does what its documentation says.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest
from attrs import evolve, frozen

from skyward import hookspecs
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import ConfigError, CredentialsError, PluginError
from skyward.hookspecs import (
    BucketStorage,
    Cluster,
    Command,
    Device,
    Follower,
    Instance,
    LaunchCommand,
    LaunchContext,
    LaunchRequest,
    MachineImage,
    Offer,
    ProviderFacts,
    Shell,
    Tags,
    Topology,
    Variant,
    hookimpl,
)
from skyward.model.instances.instance import InstanceInfo
from skyward.model.spec.image import Image
from skyward.model.spec.spec import Spec
from skyward.plugin import (
    HOOKS,
    Plugin,
    bootstrap_ops,
    completed,
    decorated,
    entered,
    followers,
    launch_command,
    topology,
    transform_image,
    validated,
)
from skyward.registry import Registry, plugins_checked, read

OFFER = Offer(provider="cloud", instance_type="small", vcpus=4, on_demand_price=0.2)
CLUSTER = Cluster(pool_id="a1", pool_name="train", spec=Spec(), offer=OFFER, provider="cloud", nodes=2)
COMMAND = LaunchCommand(argv=["python", "-m", "worker"])
CONTEXT = LaunchContext(cluster=CLUSTER, node=1, rank=0, lane=0)


@frozen
class Network:
    """What the cloud of these tests leaves behind for later calls."""

    pool: str


class Cloud:
    """A provider with every hook; it keeps what it was asked to do."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.machines: dict[str, Instance] = {}
        self.networks: list[str] = []
        self.images: dict[str, MachineImage] = {}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cloud)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        return ProviderFacts(name="cloud", ends_own_bill=False, spot=True, regions=["here"])

    @hookimpl
    async def skyward_preflight(self, spec: Spec) -> None:
        if spec.region == "nowhere":
            raise CredentialsError("The key is not for nowhere.")

    @hookimpl
    async def skyward_offers(self) -> list[Offer]:
        return [OFFER]

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> Network:
        self.networks.append(cluster.pool_id)
        return Network(cluster.pool_id)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: Network) -> list[Instance]:
        rented = [Instance(id=f"{infra.pool}-{node}", node=node, provider="cloud") for node in request.nodes]
        self.machines |= {machine.id: machine for machine in rented}
        return rented

    @hookimpl
    async def skyward_instances(self) -> list[Instance]:
        return list(self.machines.values())

    @hookimpl
    async def skyward_terminate(self, ids: tuple[str, ...]) -> None:
        for name in ids:
            self.machines.pop(name, None)

    @hookimpl
    async def skyward_release(self, infra: Network) -> None:
        self.networks.remove(infra.pool)

    @hookimpl
    async def skyward_renew(self, cluster: Cluster, ids: tuple[str, ...], expires_at: float) -> None:
        for name in ids:
            tags = Tags(pool_id=cluster.pool_id, expires_at=expires_at)
            self.machines[name] = evolve(self.machines[name], tags=tags)

    @hookimpl
    async def skyward_check_end(self, ids: tuple[str, ...]) -> None:
        if "theirs" in ids:
            raise CredentialsError("Nobody may end theirs.")

    @hookimpl
    async def skyward_clock(self) -> float | None:
        return -90.0

    @hookimpl
    async def skyward_volume_storage(self, region: str | None) -> BucketStorage:
        return BucketStorage(endpoint=f"https://{region}.example", access_key="id", secret_key="hidden")

    @hookimpl
    async def skyward_owned(self) -> list[Instance]:
        return list(self.machines.values())

    @hookimpl
    async def skyward_end(self, instances: list[Instance]) -> None:
        for instance in instances:
            self.machines.pop(instance.id, None)

    @hookimpl
    async def skyward_machine_images(self, cluster: Cluster | None) -> list[MachineImage]:
        return [each for each in self.images.values() if cluster is None or each.region == cluster.offer.region]

    @hookimpl
    async def skyward_make_machine_image(self, cluster: Cluster, instance: Instance, content_hash: str) -> MachineImage:
        return self.images.setdefault(
            content_hash,
            MachineImage(
                id=f"of-{instance.id}",
                provider="cloud",
                content_hash=content_hash,
                state="pending",
                region=cluster.offer.region,
            ),
        )

    @hookimpl
    async def skyward_delete_machine_images(self, images: tuple[MachineImage, ...]) -> None:
        for image in images:
            self.images.pop(image.content_hash, None)


class Everything:
    """A plugin given as a class, with every hook; it keeps what was entered and left."""

    name = "everything"

    def __init__(self) -> None:
        self.seen: list[str] = []

    @hookimpl
    def skyward_requires(self) -> list[Plugin]:
        return [Plugin.create("beneath")]

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        if cluster.nodes > 2:
            raise ConfigError("nodes must be 2 at most.")

    @hookimpl
    def skyward_topology(self) -> Topology:
        return Topology(ranks_per_node=7, collective=True)

    @hookimpl
    def skyward_transform(self, image: Image) -> Image:
        return evolve(image, pip=(*image.pip, "wandb"))

    @hookimpl
    def skyward_bootstrap(self, cluster: Cluster) -> list[str | Shell]:
        return [f"echo {cluster.pool_name}", Shell("true", scope="environment")]

    @hookimpl
    def skyward_launcher(self, command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
        return evolve(command, argv=("numactl", f"-N{context.node}", *command.argv))

    @hookimpl
    @contextmanager
    def skyward_around_app(self, info: InstanceInfo) -> Iterator[None]:
        yield from self._around(f"app of node {info.node}")

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        yield from self._around(f"process of rank {info.global_worker_index}")

    @hookimpl
    @contextmanager
    def skyward_around_client(self, pool: object, cluster: Cluster) -> Iterator[None]:
        yield from self._around(f"{pool} of {cluster.pool_name}")

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: ("decorated", fn(*args))

    def _around(self, what: str) -> Iterator[None]:
        self.seen.append(what)
        yield
        self.seen.append(f"end of {what}")


def ask(cloud: Cloud, hook: str, **arguments: Any) -> Any:
    """Call a hook of a provider and return what it answers."""
    return asyncio.run(ProviderHandle(cloud).call(hook, timeout=5, **arguments))


def registered(**hooks: Callable[[], Any]) -> Registry:
    """Return what is registered by a distribution whose module has these functions."""
    module = ModuleType("skyward_of_a_test")
    for name, function in hooks.items():
        setattr(module, name, hookimpl(function))
    sys.modules[module.__name__] = module
    try:
        return read([EntryPoint(name="test", value=module.__name__, group="skyward")])
    finally:
        del sys.modules[module.__name__]


def check_around(hook: Any, arguments: list[Any], what: str) -> None:
    """Check that a class's context manager is entered and left once."""
    plugin = Everything()
    with entered([plugin], hook, *arguments):
        assert [what] == plugin.seen
    assert [what, f"end of {what}"] == plugin.seen


def test_hook_providers() -> None:
    """What a distribution registers as providers is found by name."""
    assert {"Cloud": Cloud} == registered(skyward_providers=lambda: {"Cloud": Cloud}).providers


def test_hook_plugins() -> None:
    """What a distribution registers as plugins is found by name."""
    assert {"everything": Everything} == registered(skyward_plugins=lambda: {"everything": Everything}).plugins


def test_hook_integrations() -> None:
    """What a distribution registers beside its plugins is found by name."""
    assert {"Cloud": Cloud} == registered(skyward_integrations=lambda: {"Cloud": Cloud}).integrations


def test_hook_names() -> None:
    """Classes and modules that a distribution registers are names of `sky`."""
    brought = {"Cloud": Cloud, "clouds": sys}
    assert brought == registered(skyward_names=lambda: brought).names


def test_hook_accelerators() -> None:
    """Devices of a distribution are all kept."""
    device = Device(name="X1", manufacturer="AMD", architecture="X", variants=[Variant(memory_gb=96)])
    assert (device,) == registered(skyward_accelerators=lambda: [device]).accelerators


def test_hook_commands() -> None:
    """What a distribution registers as commands is found by name."""
    command = Command(lambda options: 3, summary="Count.")
    assert {"count-all": command} == registered(skyward_commands=lambda: {"count-all": command}).commands


def test_hook_facts() -> None:
    """A provider's facts are known as soon as it has a handle."""
    handle = ProviderHandle(Cloud())
    assert ("cloud", ("here",)) == (handle.name, handle.facts.regions)


def test_hook_preflight() -> None:
    """A provider can refuse before it is asked for offers."""
    assert ask(Cloud(), "skyward_preflight", spec=Spec()) is None
    with pytest.raises(CredentialsError, match="key is not for nowhere"):
        ask(Cloud(), "skyward_preflight", spec=Spec(region="nowhere"))


def test_hook_offers() -> None:
    """Offers come back as the provider lists them."""
    assert [OFFER] == ask(Cloud(), "skyward_offers", spec=Spec())


def test_hook_open() -> None:
    """What a provider sets up comes back as a value of its own."""
    assert Network("a1") == ask(Cloud(), "skyward_open", cluster=CLUSTER)


def test_hook_launch() -> None:
    """A launch gives one instance for each node, in the order asked for."""
    request = LaunchRequest(cluster=CLUSTER, nodes=[1, 0], token="t")
    assert [1, 0] == [one.node for one in ask(Cloud(), "skyward_launch", request=request, infra=Network("a1"))]


def test_hook_instances() -> None:
    """The machines of a pool are listed from what the provider knows."""
    cloud = Cloud()
    ask(cloud, "skyward_launch", request=LaunchRequest(cluster=CLUSTER, nodes=[0], token="t"), infra=Network("a1"))
    assert ["a1-0"] == [one.id for one in ask(cloud, "skyward_instances", cluster=CLUSTER, infra=Network("a1"))]


def test_hook_terminate() -> None:
    """Machines are ended by id, and those that are gone are no error."""
    cloud = Cloud()
    ask(cloud, "skyward_launch", request=LaunchRequest(cluster=CLUSTER, nodes=[0], token="t"), infra=Network("a1"))
    ask(cloud, "skyward_terminate", cluster=CLUSTER, infra=Network("a1"), ids=("a1-0", "gone"))
    assert {} == cloud.machines


def test_hook_release() -> None:
    """What was set up is taken away with the value that setting it up returned."""
    cloud = Cloud()
    infra = ask(cloud, "skyward_open", cluster=CLUSTER)
    ask(cloud, "skyward_release", cluster=CLUSTER, infra=infra)
    assert [] == cloud.networks


def test_hook_renew() -> None:
    """A later expiry is written on the machines named."""
    cloud = Cloud()
    ask(cloud, "skyward_launch", request=LaunchRequest(cluster=CLUSTER, nodes=[0, 1], token="t"), infra=Network("a1"))
    ask(cloud, "skyward_renew", cluster=CLUSTER, infra=Network("a1"), ids=("a1-0",), expires_at=9.0)
    assert [9.0, None] == [one.tags and one.tags.expires_at for one in cloud.machines.values()]


def test_hook_check_end() -> None:
    """Nothing is said of what may be ended; what may not is refused, by the provider's name."""
    cloud = Cloud()
    assert ask(cloud, "skyward_check_end", cluster=CLUSTER, infra=Network("a1"), ids=("a1-0",)) is None
    with pytest.raises(CredentialsError, match="Nobody may end theirs") as caught:
        ask(cloud, "skyward_check_end", cluster=CLUSTER, infra=Network("a1"), ids=("theirs",))
    assert "cloud" == caught.value.provider


def test_hook_clock() -> None:
    """A provider says how far its clock is from ours, and its handle keeps it; a failed call changes nothing."""
    handle = ProviderHandle(Cloud())
    assert "1 min ahead of that of cloud" in asyncio.run(handle.measure_clock())
    assert time.time() - 90.0 == pytest.approx(handle.now(), abs=1.0)


def test_hook_volume_storage() -> None:
    """The object store that buckets without a store of their own are in, with its keys, which no repr shows."""
    store = ask(Cloud(), "skyward_volume_storage", spec=Spec(), region="here")
    assert BucketStorage(endpoint="https://here.example", access_key="id", secret_key="hidden") == store
    assert "hidden" not in repr(store)


def test_hook_owned() -> None:
    """Machines are listed without their pool."""
    cloud = Cloud()
    ask(cloud, "skyward_launch", request=LaunchRequest(cluster=CLUSTER, nodes=[0], token="t"), infra=Network("a1"))
    assert ["a1-0"] == [one.id for one in ask(cloud, "skyward_owned")]


def test_hook_end() -> None:
    """Machines are ended without their pool."""
    cloud = Cloud()
    ask(cloud, "skyward_launch", request=LaunchRequest(cluster=CLUSTER, nodes=[0], token="t"), infra=Network("a1"))
    ask(cloud, "skyward_end", instances=ask(cloud, "skyward_owned"))
    assert {} == cloud.machines


MACHINE = Instance(id="a1-0", node=0, provider="cloud")


def test_hook_make_machine_image() -> None:
    """An image is made of a machine, and the same again is the one that there is."""
    cloud = Cloud()
    given = {"cluster": CLUSTER, "infra": None, "content_hash": "4f1e"}
    made = ask(cloud, "skyward_make_machine_image", instance=MACHINE, **given)
    assert ("of-a1-0", "4f1e", "pending") == (made.id, made.content_hash, made.state)
    assert made is ask(cloud, "skyward_make_machine_image", instance=evolve(MACHINE, id="a1-1"), **given)


def test_hook_machine_images() -> None:
    """Images are listed that machines of an offer can boot from, or all that there are."""
    cloud = Cloud()
    made = ask(cloud, "skyward_make_machine_image", cluster=CLUSTER, infra=None, instance=MACHINE, content_hash="4f1e")
    elsewhere = evolve(CLUSTER, offer=evolve(OFFER, region="elsewhere"))
    assert [made] == ask(cloud, "skyward_machine_images", cluster=CLUSTER)
    assert [] == ask(cloud, "skyward_machine_images", cluster=elsewhere)
    assert [made] == ask(cloud, "skyward_machine_images", cluster=None)


def test_hook_delete_machine_images() -> None:
    """Images are deleted, and those that are gone are no error."""
    cloud = Cloud()
    made = ask(cloud, "skyward_make_machine_image", cluster=CLUSTER, infra=None, instance=MACHINE, content_hash="4f1e")
    ask(cloud, "skyward_delete_machine_images", images=(made,))
    ask(cloud, "skyward_delete_machine_images", images=(made,))
    assert [] == ask(cloud, "skyward_machine_images", cluster=None)


def test_hook_requires() -> None:
    """What a plugin builds on stands before it."""
    plugin = Everything()
    assert (Plugin.create("beneath"), plugin) == completed([plugin])


def test_hook_validate() -> None:
    """A refusal reaches the user as it is."""
    validated([Everything()], CLUSTER)
    with pytest.raises(ConfigError, match="nodes must be 2 at most"):
        validated([Everything()], evolve(CLUSTER, nodes=3))


def test_hook_topology() -> None:
    """A plugin says how many ranks a node has, and that they work as one."""
    assert Topology(ranks_per_node=7, collective=True) == topology([Everything()], CLUSTER)


def test_hook_transform() -> None:
    """An image is completed by a plugin."""
    assert ("torch", "wandb") == transform_image([Everything()], Image(pip=["torch"]), CLUSTER).pip


def test_hook_bootstrap() -> None:
    """Commands and steps both become steps."""
    assert (Shell("echo train"), Shell("true", scope="environment")) == bootstrap_ops([Everything()], CLUSTER)


def test_hook_launcher() -> None:
    """A launcher knows which process its command starts."""
    command = launch_command([Everything()], COMMAND, CONTEXT)
    assert ("numactl", "-N1", "python", "-m", "worker") == command.argv


def test_hook_around_app() -> None:
    """A plugin wraps the life of a node, which it hears of."""
    check_around("around_app", [InstanceInfo(node=3)], "app of node 3")


def test_hook_around_process() -> None:
    """A plugin wraps the life of a worker process, whose rank it hears."""
    check_around("around_process", [InstanceInfo(node=3)], "process of rank 3")


def test_hook_around_client() -> None:
    """A plugin wraps the time of a pool, which it gets."""
    check_around("around_client", ["pool", CLUSTER], "pool of train")


def test_hook_follow() -> None:
    """A plugin returns what follows the pool, or nothing."""
    follower = Follower()
    plugins = [
        Plugin.create("one").with_follower(lambda pool: follower if pool == "pool" else None),
        Plugin.create("none").with_follower(lambda pool: None),
    ]
    assert [("one", follower)] == followers(plugins, "pool")
    with pytest.raises(PluginError, match="'no' failed in follow: TypeError: it must return Follower, not 5"):
        followers([Plugin.create("no").with_follower(lambda pool: 5)], "pool")  # type: ignore[arg-type,return-value]


def test_hook_decorate() -> None:
    """A plugin wraps the function of a task."""
    assert ("decorated", 3) == decorated([Everything()], len)("abc")


def test_the_hooks_of_plugins_have_the_arguments_of_their_specifications() -> None:
    """What workers know of the hooks, without loading pluggy, is what the specifications say."""
    told = {
        name.removeprefix("skyward_"): tuple(inspect.signature(spec).parameters)
        for name, spec in vars(hookspecs).items()
        if name.removeprefix("skyward_") in HOOKS
    }
    assert told == dict(HOOKS)


def test_a_provider_needs_no_more_than_five_hooks() -> None:
    """Hooks that a provider does without answer None."""

    class Small(Cloud):
        skyward_preflight = skyward_open = skyward_release = None  # type: ignore[assignment]

    assert ask(Small(), "skyward_open", cluster=CLUSTER) is None
    assert ask(Small(), "skyward_release", cluster=CLUSTER, infra=None) is None


def test_an_argument_that_a_hook_does_not_have_is_refused() -> None:
    """A misspelt argument is found before anything is called."""

    class Wrong:
        @hookimpl
        def skyward_transform(self, image: Image, clutser: Cluster) -> Image:
            return image

    with pytest.raises(PluginError, match=r"'Wrong' implements a hook wrongly(.|\n)*clutser"):
        plugins_checked([Wrong()])


def test_a_hook_that_does_not_exist_is_refused() -> None:
    """A misspelt hook is found before anything is called."""

    class Wrong:
        @hookimpl
        def skyward_transfrom(self, image: Image) -> Image:
            return image

    with pytest.raises(PluginError, match=r"'Wrong' implements a hook wrongly.*skyward_transfrom"):
        plugins_checked([Wrong()])
