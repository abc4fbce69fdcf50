"""
Every hook of Skyward: how providers and plugins, third parties' too, take part.

The entry point of a distribution, in group `skyward`, names a module whose functions *register* what it brings.
A provider is a frozen value whose class has the provider's hooks as methods.
A plugin is a `skyward.Plugin`, or a value whose class has the plugin's hooks as methods.
Whatever implements a hook is marked `@hookimpl`, and may leave out arguments that it has no use for.

Provider hooks are coroutine functions, except `skyward_facts`; they and the `around` hooks may wait for the world.
All others are quick, and touch nothing.
What a hook raises is reported as a PluginError that names the plugin and the hook, unless its text says otherwise.
"""

# mypy: disable-error-code="empty-body"
# A hook has no body of its own.

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from skyward.hookspecs_distribution import (
    hookimpl,
    hookspec,
    skyward_accelerators,
    skyward_commands,
    skyward_integrations,
    skyward_names,
    skyward_plugins,
    skyward_providers,
)
from skyward.model.accelerators.device import Device, Variant
from skyward.model.cli_command import Command
from skyward.model.events.follower import CallTimes, Follower
from skyward.model.instances.bucket_storage import BucketStorage
from skyward.model.instances.cluster import Cluster, KeyPair, LaunchCommand, LaunchContext, Topology
from skyward.model.instances.machine import (
    Instance,
    InstanceState,
    LaunchRequest,
    LocalAddress,
    ProviderFacts,
    SSHAddress,
)
from skyward.model.instances.machine_image import MachineImage
from skyward.model.instances.offer import Offer
from skyward.model.instances.tags import Tags
from skyward.model.spec.op import AptInstall, OpLike, PipInstall, Shell

if TYPE_CHECKING:
    from skyward.model.instances.instance import InstanceInfo
    from skyward.model.spec.image import Image
    from skyward.model.spec.spec import Spec

# Beside the hooks, plugins import from here what hooks take and return.
__all__ = ["Cluster", "Command", "Device", "Instance", "InstanceState", "LaunchCommand", "LaunchContext"]
__all__ += ["AptInstall", "KeyPair", "LocalAddress", "MachineImage", "Offer", "PipInstall", "ProviderFacts", "Shell"]
__all__ += ["CallTimes", "Follower"]
__all__ += ["BucketStorage", "LaunchRequest", "SSHAddress", "Tags", "Topology", "Variant", "hookimpl", "hookspec"]
# The hooks of a distribution; their text is in a file of their own.
__all__ += ["skyward_accelerators", "skyward_commands", "skyward_integrations", "skyward_names", "skyward_plugins"]
__all__ += ["skyward_providers"]

# Hooks of a provider. Core asks the provider that the user wrote, awaits the answer in one place with a time limit, and
# takes what comes back; there is nothing to combine. Errors of Skyward go on as they are, with the provider's name.


@hookspec(firstresult=True)
def skyward_facts() -> ProviderFacts:
    """
    Return what holds for the provider, whatever is rented from it; required.

    When: once, when a pool is opened.
    Runs on: the client. No coroutine function: it is quick and touches nothing.

    Returns:
        The facts.

    Example: `return ProviderFacts(name="sample", ends_own_bill=True)`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_preflight(spec: Spec) -> None:
    """
    Check that the provider can be used: credentials, permissions, settings.

    When: once per pool, before offers are listed.
    Runs on: the client, in the event loop; whatever blocks goes to a thread.

    Args:
        spec: What the user asks for.

    Raises:
        CredentialsError: If the account cannot be used.
        ConfigError: If a setting can never be met here.

    Example: `if key is None: raise CredentialsError("SAMPLE_API_KEY is not set.")`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_offers(spec: Spec) -> Sequence[Offer]:
    """
    List what is sold now; required.

    When: once per pool, and again when every offer was refused; by `sky.offers`, with a spec that asks for nothing.
    Runs on: the client, in the event loop.

    Args:
        spec: What the user asks for. It may narrow the question to the cloud down; core checks every offer against it.

    Returns:
        One offer for each kind of machine and place, none left out for its price.

    Example: `return [Offer(provider="sample", instance_type="small", vcpus=4, on_demand_price=0.2)]`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_open(cluster: Cluster) -> Any:
    """
    Set up what the pool's machines share: network, key, group.

    When: once per pool and region, before its first launch there.
    Runs on: the client, in the event loop.

    Args:
        cluster: The pool; `cluster.offer.region` is the region.

    Returns:
        A frozen value of the provider's own, handed to all later hooks as `infra`, or None. Its fields are what JSON
        can hold, because it is written down; a secret has no place in it.

    Example: `return Network(vpc_id=await create_vpc(tags={"skyward": cluster.pool_id}))`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_launch(request: LaunchRequest, infra: Any) -> Sequence[Instance]:
    """
    Rent machines, each with its tags written on it in the call that creates it; required.

    When: at the start, and whenever nodes are replaced or added.
    Runs on: the client, in the event loop.

    Args:
        request: Which nodes need a machine. The same token twice must not rent twice.
        infra: What `skyward_open` returned.

    Returns:
        An instance for each node that got a machine, each with its `node`; they need not run yet. Nodes without one
        are tried with the next offer.

    Raises:
        CapacityError: If there are none left; the next offer is tried.
        QuotaError: If the account may have no more; offers that count for the same limit, as `of` says, are passed
            over.
        CredentialsError: If the account cannot be used; nothing else is tried.
        Exception: Anything else leaves open whether machines were rented. Core lists the pool's machines,
            and takes over or ends those that bear the token. Where `request.machine_image` is set, the same is asked
            for once more without it, with a token of its own.

    Example: `return [await rent(node, tags=request.tags_of(node).to_strings()) for node in request.nodes]`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_instances(cluster: Cluster, infra: Any) -> Sequence[Instance]:
    """
    List the pool's machines with their present state; required.

    When: every second or two until all run, then now and then, and after a launch whose answer was lost.
    Runs on: the client, or its guardian, in the event loop.

    Args:
        cluster: The pool.
        infra: What `skyward_open` returned.

    Returns:
        All that exist, found by tag and not from memory; one that was there and is missing counts as ended, and one
        that no node of the pool has is ended.

    Example: `return [instance_of(row) for row in await list_machines(tag=cluster.pool_id)]`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_terminate(cluster: Cluster, infra: Any, ids: Sequence[str]) -> None:
    """
    End machines, and return when the cloud has confirmed that they cost nothing more; required.

    When: when nodes are replaced, the pool shrinks, or it closes.
    Runs on: the client, or its guardian, in the event loop.

    Args:
        cluster: The pool.
        infra: What `skyward_open` returned.
        ids: The instances' ids. One that is gone already is no error.

    Raises:
        SkywardError: If one may go on costing money; its id is in the message.

    Example: `await asyncio.gather(*(delete(id) for id in ids))`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_check_end(cluster: Cluster, infra: Any, ids: Sequence[str]) -> None:
    """
    Check that the account may terminate machines, without terminating them, for clouds that support it.

    When: once per pool and region, right after the first machine there was rented; beside its boot.
    Runs on: the client, in the event loop.

    Args:
        cluster: The pool.
        infra: What `skyward_open` returned.
        ids: The instances' ids. Lists may not have them yet.

    Raises:
        CredentialsError: If the account may not. No node is made then; the machines terminate themselves, where they
            can. What else is raised is no obstacle.

    Example: `await call("TerminateInstances", ids=ids, dry_run=True)`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_release(cluster: Cluster, infra: Any) -> None:
    """
    Take away what `skyward_open` set up.

    When: once per pool, after its last machine ended; also when the pool never got that far.
    Runs on: the client, or its guardian, in the event loop.

    Args:
        cluster: The pool.
        infra: What `skyward_open` returned; in a guardian, None if the client died before it had that. What is gone
            already is no error.

    Example: `await delete_vpc(infra.vpc_id)`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_renew(cluster: Cluster, infra: Any, ids: Sequence[str], expires_at: float) -> None:
    """
    Write a later expiry on machines, for clouds whose tags can be changed.

    When: right after the first machine of a region was rented, whenever half the time to the expiry is over, as long as
        the client lives, and for `sky down` of a pool whose client may live on another computer.
    Runs on: the client, in the event loop.

    Args:
        cluster: The pool.
        infra: What `skyward_open` returned; None for `sky down`, which knows no more than `cluster.offer.region`.
        ids: The instances' ids. One that is gone already is no error.
        expires_at: Seconds since 1970, for the tag `skyward:expires`; 0 ends the pool of a running client.

    Example: `await set_tags(ids, {"skyward:expires": str(int(expires_at))})`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_clock() -> float | None:
    """
    Return by how many seconds the cloud's clock is ahead of this computer's, by its last answers.

    Expiries are written and judged by the cloud's clock, and a user whose clock differs much is warned. Without the
    hook, this computer's clock is taken for right.

    When: after offers were listed, before an expiry is written again, and after `skyward_owned`.
    Runs on: the client, in the event loop. It asks nothing by itself.

    Returns:
        The seconds; below zero if this computer's clock is ahead; None before an answer.

    Example: `return self.api.ahead`, which `skyward.rest.Api` reads from the `Date` of each reply
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_owned() -> Sequence[Instance]:
    """
    List every machine of ours that the account has, whichever pool and client it was rented by.

    When: for `sky.instances()`, `sky ls` and `sky down`, and when a pool looks for orphans.
    Runs on: the client, or a guardian that cannot list its pool's machines, in the event loop.

    Returns:
        All that exist in all regions, with their `tags`; distinguished from others' machines by the tag `skyward:pool`.

    Example: `return [instance_of(row) for row in await list_machines(tag_key="skyward:pool")]`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_end(instances: Sequence[Instance]) -> None:
    """
    End machines that `skyward_owned` listed, and what else their pools left; return when the cloud has confirmed it.

    When: for `sky down`.
    Runs on: the client, in the event loop.

    Args:
        instances: The machines. One that is gone already is no error.

    Raises:
        SkywardError: If one may go on costing money; its id is in the message.

    Example: `await asyncio.gather(*(delete(instance.id) for instance in instances))`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_machine_images(cluster: Cluster | None) -> Sequence[MachineImage]:
    """
    List the machine images that were made of machines of ours, whatever their state.

    When: with `warm_image=True`, before each launch and before an image is made; for `sky images`. Only where
        `ProviderFacts.machine_images` says that there are any.
    Runs on: the client, in the event loop.

    Args:
        cluster: Only those that machines of `cluster.offer` can boot from in place of what they boot by themselves:
            same region, architecture, drivers, login. None for all that the account has.

    Returns:
        The images, found by tag and not from memory; those that are being made among them.

    Example: `return [image_of(row) for row in await list_images(tag_key="skyward:image")]`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_make_machine_image(
    cluster: Cluster, infra: Any, instance: Instance, content_hash: str
) -> MachineImage:
    """
    Begin to make an image of a machine, which goes on running meanwhile and must not notice.

    A machine that boots from it later is a new one: it lets in the key of its own pool and no other, has a host key of
    its own, and keeps nothing of the node that the first one was (`nodes` in Skyward's cache).

    When: with `warm_image=True`, in the background, once a pool's first node is ready and there is no such image.
    Runs on: the client, in the event loop.

    Args:
        cluster: The pool, with the offer that the machine was rented by.
        infra: What `skyward_open` returned.
        instance: The machine; what it holds is on its disk.
        content_hash: What it holds; to be written on the image in the call that makes it.

    Returns:
        The image, in whatever state. Where one with this hash that fits is there or under way, that one: several
        clients may ask for it at the same time.

    Raises:
        SkywardError: If there will be none; the pool goes on without, and its user is warned.

    Example: `return image_of(await snapshot(instance.id, name=content_hash, tags={"skyward:image": content_hash}))`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_delete_machine_images(images: Sequence[MachineImage]) -> None:
    """
    Delete machine images with all that they cost, and return when that is done.

    When: for `sky images delete`, and before an image is made in the place of one that failed.
    Runs on: the client, in the event loop.

    Args:
        images: Images that `skyward_machine_images` listed. One that is gone already is no error.

    Raises:
        SkywardError: If one may go on costing money; its id is in the message.

    Example: `await asyncio.gather(*(delete_image(image.id) for image in images))`
    Since: 0.1
    """


@hookspec(firstresult=True)
async def skyward_volume_storage(spec: Spec, region: str | None) -> BucketStorage | None:
    """
    Return where buckets of a `Volume` without a `storage` of its own are: the provider's own object store.

    When: once per pool whose volumes need it, after offers were listed and before anything is rented; and again when
        the keys that it returned are about to end.
    Runs on: the client, in the event loop.

    Args:
        spec: What the user asks for.
        region: Region of the offer that is tried first; None where the provider has none.

    Returns:
        The store; without keys where its machines have a role of their own that opens it. None where there is none,
        or the account has no keys for it.

    Raises:
        CredentialsError: If there is one that the account cannot use, with what to do about it.

    Example: `return BucketStorage(endpoint=f"https://s3.{region}.example.org", access_key=..., secret_key=...)`
    Since: 0.1
    """


# Hooks of a plugin, asked one by one in the order of `plugins=[...]`. The example of each is a `with_...` of
# `skyward.Plugin`, which takes a function with the same arguments; a class marks a method of the hook's name.


@hookspec
def skyward_requires() -> Iterable[Any]:
    """
    Contribute the plugins that this one builds on.

    When: once, before a pool is opened and before all other hooks of plugins; by `@sky.integrations.X(...)`, where it
        is written.
    Runs on: the client.

    Returns:
        Plugins, in the order in which they stand before this one. One that the user gave, by its name, takes the place
        of the one that is returned, and has to stand before this one.

    Example: `.with_requires(lambda: [sky.plugins.torch()])`
    Since: 0.1
    """


@hookspec
def skyward_validate(cluster: Cluster) -> None:
    """
    Refuse what cannot work, before anything is rented.

    When: once per offer chosen, after the layout of ranks is known.
    Runs on: the client.

    Args:
        cluster: What is about to be rented.

    Raises:
        ConfigError: If the user has to change something; it reaches the user as it is.

    Example: `.with_validate(check_gpu)`, where `check_gpu(cluster)` raises `ConfigError("...")`
    Since: 0.1
    """


@hookspec
def skyward_topology(cluster: Cluster) -> Topology | None:
    """
    Contribute to the layout of ranks.

    When: once per offer chosen, before all other hooks of plugins.
    Runs on: the client.

    Args:
        cluster: What is about to be rented; how many ranks its nodes get is not known yet.

    Returns:
        What the plugin needs, or None. Two plugins that need different numbers, or whose ranks meet in different ways,
        are refused; slices of accelerators that no plugin says it cuts are, too. A pool is collective if any plugin
        says so. All its nodes are of one cloud then, and each is asked whether it reaches the others, before it gets a
        task.

    Example: `.with_topology(lambda cluster: Topology(ranks_per_node=7))`
    Since: 0.1
    """


@hookspec
def skyward_transform(image: Image, cluster: Cluster) -> Image:
    """
    Contribute to the image.

    When: once per offer chosen, before the image's hash is taken.
    Runs on: the client.

    Args:
        image: What the user, and the plugins before this one, ask for.
        cluster: What is about to be rented.

    Returns:
        The image, changed or not; the next plugin gets it.

    Example: `.with_image_transform(lambda image, cluster: evolve(image, pip=(*image.pip, "wandb")))`
    Since: 0.1
    """


@hookspec
def skyward_bootstrap(cluster: Cluster) -> Iterable[OpLike]:
    """
    Contribute steps to making a node ready.

    When: once per offer chosen, when the script is written; its steps run after those of the image.
    Runs on: the client; the steps run on every node.

    Args:
        cluster: What is about to be rented.

    Returns:
        Steps: commands, `Shell`, `PipInstall` or `AptInstall`; those of all plugins follow each other.

    Example: `.with_bootstrap(lambda cluster: ["nvidia-smi -pm 1"])`
    Since: 0.1
    """


@hookspec
def skyward_launcher(command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
    """
    Wrap the command that starts a worker process.

    When: for each worker process, when its node gets an instance.
    Runs on: the client; the command runs on the node.

    Args:
        command: What the plugins before this one make of it.
        context: Which process it starts.

    Returns:
        The command, changed or not; the next plugin gets it, so that the last one is outermost.

    Example: `.with_launcher(lambda command, context: evolve(command, argv=("numactl", "-N0", *command.argv)))`
    Since: 0.1
    """


@hookspec
def skyward_around_app(info: InstanceInfo) -> AbstractContextManager[object] | None:
    """
    Wrap the life of a node.

    When: entered before the node's first worker starts, left when the node ends, within 30 seconds if its client has
        died. It is not left where the whole node is killed, as by its watchdog.
    Runs on: the node, in a process of its own; environment variables set on entering reach the workers.

    Args:
        info: The node, as its first rank sees it.

    Returns:
        A context manager, or None. Nested: the first plugin's is entered first and left last.

    Example: `.with_around_app(lambda info: control_daemon())`
    Since: 0.1
    """


@hookspec
def skyward_around_process(info: InstanceInfo) -> AbstractContextManager[object] | None:
    """
    Wrap the life of a worker process.

    When: entered before the process runs its first task, left when it ends in good order.
    Runs on: the worker.

    Args:
        info: The rank that the process belongs to.

    Returns:
        A context manager, or None. Nested: the first plugin's is entered first and left last.

    Example: `.with_around_process(lambda info: process_group(rank=info.global_worker_index))`
    Since: 0.1
    """


@hookspec
def skyward_around_client(pool: Any, cluster: Cluster) -> AbstractContextManager[object] | None:
    """
    Wrap the time in which the pool can be used.

    When: entered when the pool is ready, left before its nodes end.
    Runs on: the client, in the thread that opens the pool.

    Args:
        pool: The pool; calls can be sent to it.
        cluster: What was rented.

    Returns:
        A context manager, or None. Nested: the first plugin's is entered first and left last.

    Example: `.with_around_client(lambda pool, cluster: dashboard(cluster.pool_name))`
    Since: 0.1
    """


@hookspec
def skyward_follow(pool: Any) -> Follower | None:
    """
    Follow the calls and events of the pool, and send a text along with each call.

    When: once per spec that is tried, before its first machine is asked for.
    Runs on: the client, in the thread that opens the pool. Which thread calls a method of the follower stands there.

    Args:
        pool: The pool, which is not open yet.

    Returns:
        A follower, or None. Those of several plugins are called one after the other, each with a text of its own.

    Example: `.with_follower(lambda pool: Durations())`, where `class Durations(Follower)` has `ended(self, call)`
    Since: 0.1
    """


@hookspec
def skyward_decorate(fn: Callable[..., Any]) -> Callable[..., Any]:
    """
    Wrap the function of each task.

    When: before a worker calls a function; what the function raises is not the plugin's failure.
    Runs on: the worker.

    Args:
        fn: The function, plain, generator or async, as the plugins after this one wrap it.

    Returns:
        A function to call in its place. Nested: the first plugin's is outermost. `skyward.plugin.during` makes one that
        keeps generator and async functions what they are.

    Example: `.with_decorator(during(lambda: torch.no_grad()))`
    Since: 0.1
    """
