"""The provider of containers on this machine."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen

from skyward.provider import (
    ConfigError,
    DockerImage,
    Instance,
    InstanceState,
    KeyPair,
    Offer,
    ProviderFacts,
    ProvisionError,
    choice,
    gigabytes,
    hookimpl,
    identified,
    positive,
    shell_file,
    suggesting,
)
from skyward_container.engine import PULL_TIMEOUT, attempt, command, failed, find_binary, is_gone
from skyward_container.machine import HOST_KEY, instance_of, labels

if TYPE_CHECKING:
    from skyward.provider import Cluster, LaunchRequest, Spec

_log = logging.getLogger("skyward.provider.container")

# The first process receives it, and with that the container ends.
_END = ("kill", "-TERM", "1")


def _image(value: str | DockerImage) -> str:
    """Return an image's name, checked."""
    given: object = str(value) if isinstance(value, DockerImage) else value
    if not isinstance(given, str) or not given.strip() or given.startswith("-"):
        raise ConfigError(f"image must be the name of an image, such as 'debian:12', not {value!r}.")
    return given


def _binary(value: str | None) -> Literal["docker", "podman"] | None:
    """Return the command line's name, checked."""
    return None if value is None else choice(value, "binary", ("docker", "podman"))  # type: ignore[return-value]


def _cpus(value: float | None) -> float | None:
    """Return a number of processors, checked."""
    return None if value is None else positive(value, "cpus")


def _memory(value: str | float | None) -> float | None:
    """Return an amount of memory in GB, checked."""
    return None if value is None else gigabytes(value, "memory")


@frozen(kw_only=True)
class Network:
    """
    Name what a pool's containers share.

    Args:
        name: The network.
        own: Whether it was made for this pool, and goes with it.
    """

    name: str
    own: bool


@suggesting
@frozen(kw_only=True)
class Container:
    """
    Use containers of this machine, each a node.

    Args:
        image: What they are made from, by name or as one of `sky.containers`: it needs an OpenSSH server and a Python
            of the client's minor version.
        binary: `"docker"` or `"podman"`; None is the one that is installed.
        network: Network to join; None makes one for each pool.
        cpus: Processors that each may use; None for all.
        memory: Memory that each may use, such as `"4GB"`; None for all. Where this machine supports no limits, a
            warning says so and there are none.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Container(image="debian:12", memory="4GB").memory
    4.0
    """

    image: str = field(converter=_image)
    binary: Literal["docker", "podman"] | None = field(default=None, converter=_binary)
    network: str | None = None
    cpus: float | None = field(default=None, converter=_cpus)
    memory: float | None = field(default=None, converter=_memory)

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: nothing is billed, and a container can terminate on its own."""
        return ProviderFacts(name="container", ends_own_bill=True, end_command=_END)

    @hookimpl
    async def skyward_preflight(self, spec: Spec) -> None:
        """
        Check that containers can be made.

        Raises:
            ConfigError: If the command line or the image is not there.
        """
        binary = find_binary(self.binary)
        if (await attempt(binary, "image", "inspect", self.image)).code:
            pulled = await attempt(binary, "pull", self.image, timeout=PULL_TIMEOUT)
            if pulled.code:
                last = (pulled.err or pulled.out).splitlines()[-1:]
                raise ConfigError(
                    f"{binary} has no image {self.image!r} and cannot get it: {' '.join(last)}",
                    hint="docs/containers.md shows how to make one.",
                )

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        """Offer as much of this machine as the limits allow."""
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
        return (
            Offer(
                provider="container",
                instance_type=self.image,
                vcpus=self.cpus or float(os.cpu_count() or 1),
                memory_gb=round(self.memory or whole, 1),
                on_demand_price=0.0,
            ),
        )

    @hookimpl
    async def skyward_open(self, cluster: Cluster) -> Network:
        """Make the pool's network, unless it is to join another."""
        if self.network is not None:
            return Network(name=self.network, own=False)
        name = f"skyward-{cluster.pool_id}"
        label = f"skyward.pool={cluster.pool_id}"
        await command(find_binary(self.binary), "network", "create", "--label", label, name)
        return Network(name=name, own=True)

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: Network) -> Sequence[Instance]:
        """
        Start containers, side by side.

        Raises:
            ProvisionError: If one cannot be started; the others are removed then.
        """
        names = [f"skyward-{request.cluster.pool_id}-{node}-{request.token[-6:]}" for node in request.nodes]
        started = await asyncio.gather(
            *(self._start(name, node, request, infra) for name, node in zip(names, request.nodes, strict=True)),
            return_exceptions=True,
        )
        failures = [error for error in started if isinstance(error, BaseException)]
        if failures:
            await self.skyward_terminate(infra=infra, ids=names)
            raise failures[0]
        return [instance for instance in started if isinstance(instance, Instance)]

    async def _start(self, name: str, node: int, request: LaunchRequest, infra: Network) -> Instance:
        binary, host_key = find_binary(self.binary), KeyPair()
        if before := await self._listed(f"label=skyward.token={request.token}", request.cluster.key.private, name):
            return before[0]
        environment = {"SKYWARD_LOGIN_KEY": request.cluster.key.public, "SKYWARD_HOST_KEY": host_key.private}
        words = ["run", "--detach", "--name", name, "--hostname", name, "--network", infra.name]
        for label, text in {**labels(request.tags_of(node)), HOST_KEY: host_key.public}.items():
            words += ["--label", f"{label}={text}"]
        words += ["--publish", "127.0.0.1::22"]
        for variable in environment:
            # Its text comes from the command's own environment: every user of this machine reads command lines.
            words += ["--env", variable]
        end = [self.image, "sh", "-c", shell_file(__package__, "start.sh")]
        done = await attempt(binary, *words, *self._limits(), *end, env=environment)
        if done.code and self._limits():
            await attempt(binary, "rm", "--force", name)
            again = await attempt(binary, *words, *end, env=environment)
            if not again.code:
                _log.warning("%s supports no limits here, so %s has none: %s", binary, name, done.err[-200:])
                done = again
        if done.code:
            raise failed(binary, "run", done)
        return await self._started(binary, name, request.cluster)

    def _limits(self) -> list[str]:
        limits = ["--cpus", f"{self.cpus:g}"] if self.cpus else []
        return limits + (["--memory", f"{int(self.memory * 1e9)}b"] if self.memory else [])

    async def _started(self, binary: str, name: str, cluster: Cluster) -> Instance:
        """Describe a container that was just started, or say what became of it."""
        for made in await self._listed(f"label=skyward.pool={cluster.pool_id}", cluster.key.private, name):
            if made.state is InstanceState.RUNNING and made.address is not None:
                return made
        logs = await attempt(binary, "logs", "--tail", "5", name)
        said = "".join(f"\n  | {line}" for line in (logs.err or logs.out).splitlines())
        raise ProvisionError(f"Container {name} ended at once.{said}", provider="container")

    async def _listed(self, filtered: str, private_key: str | None = None, name: str | None = None) -> list[Instance]:
        """List containers of ours that exist, found by a label."""
        binary = find_binary(self.binary)
        listed = await command(binary, "ps", "--all", "--filter", filtered, "--format", "{{.Names}}")
        names = [found for found in listed.split() if name in (None, found)]
        if not names:
            return []
        rows = identified(await _described(binary, names), lambda row: row["Name"], provider="container", field="Name")
        described = (instance_of(row, private_key, time.time()) for row in rows)
        return [instance for instance in described if instance is not None]

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: Network) -> Sequence[Instance]:
        """List the pool's containers, found by their label."""
        return await self._listed(f"label=skyward.pool={cluster.pool_id}", cluster.key.private)

    @hookimpl
    async def skyward_owned(self) -> Sequence[Instance]:
        """List the containers of all pools."""
        return await self._listed("label=skyward.pool")

    @hookimpl
    async def skyward_end(self, instances: Sequence[Instance]) -> None:
        """
        Remove containers, and the networks of their pools where nothing else is in them.

        Raises:
            ProvisionError: If a container is still there.
        """
        binary = find_binary(self.binary)
        await _remove(binary, [instance.id for instance in instances])
        for pool_id in sorted({instance.tags.pool_id for instance in instances if instance.tags is not None}):
            await attempt(binary, "network", "rm", f"skyward-{pool_id}")

    @hookimpl
    async def skyward_terminate(self, infra: Network, ids: Sequence[str]) -> None:
        """
        Remove containers, and wait until they are gone.

        Raises:
            ProvisionError: If one is still there.
        """
        await _remove(find_binary(self.binary), ids)

    @hookimpl
    async def skyward_release(self, infra: Network) -> None:
        """Remove the pool's network."""
        if infra.own:
            binary = find_binary(self.binary)
            done = await attempt(binary, "network", "rm", infra.name)
            if done.code and not is_gone(done):
                raise failed(binary, "network rm", done)


async def _described(binary: str, names: Sequence[str]) -> list[Any]:
    """Describe containers; one that is gone meanwhile, or stuck in its removal, is missing and hides no other."""
    done = await attempt(binary, "inspect", "--type", "container", *names)
    rows: list[Any] = json.loads(done.out or "[]")
    if done.code and len(names) > 1:
        alone = await asyncio.gather(*(_described(binary, [name]) for name in names))
        rows = [row for each in alone for row in each]
    return rows


async def _remove(binary: str, names: Sequence[str]) -> None:
    done = await asyncio.gather(*(attempt(binary, "rm", "--force", "--volumes", name) for name in names))
    for name, result in zip(names, done, strict=True):
        if result.code and not is_gone(result):
            raise failed(binary, f"rm {name}", result)
