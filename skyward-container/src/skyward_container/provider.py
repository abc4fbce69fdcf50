"""The provider of containers on this machine."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from attrs import field, frozen

from skyward.errors import ConfigError, ProvisionError
from skyward.hookspecs import Instance, InstanceState, KeyPair, Offer, ProviderFacts, SSHAddress, hookimpl
from skyward.model.memory import gigabytes
from skyward_container.engine import PULL_TIMEOUT, attempt, command, failed, find_binary

if TYPE_CHECKING:
    from skyward.hookspecs import Cluster, LaunchRequest
    from skyward.model.spec import Spec

_log = logging.getLogger(__name__)

# The container's first process is its SSH server; nothing but the pool's key is let in.
_START = """
set -eu
mkdir -p /run/sshd /run/skyward
chmod 700 /run/skyward
printf '%s\\n' "$SKYWARD_LOGIN_KEY" >/run/skyward/authorized_keys
umask 077
printf '%s\\n' "$SKYWARD_HOST_KEY" >/run/skyward/host_key
unset SKYWARD_LOGIN_KEY SKYWARD_HOST_KEY
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] || { echo 'this image has no OpenSSH server' >&2; exit 96; }
exec "$sshd" -D -e -h /run/skyward/host_key -o AuthorizedKeysFile=/run/skyward/authorized_keys -o StrictModes=no \\
    -o PermitRootLogin=prohibit-password -o PasswordAuthentication=no -o UsePAM=no -o MaxSessions=100
"""

# The first process hears it, and with that the container ends.
_END = ("kill", "-TERM", "1")


def _image(value: str) -> str:
    """Return an image's name, checked."""
    given: object = value
    if not isinstance(given, str) or not given.strip() or given.startswith("-"):
        raise ConfigError(f"image must be the name of an image, such as 'debian:12', not {value!r}.")
    return given


def _binary(value: str | None) -> Literal["docker", "podman"] | None:
    """Return the command line's name, checked."""
    if value not in (None, "docker", "podman"):
        raise ConfigError(f'binary must be "docker" or "podman", not {value!r}.')
    return value  # type: ignore[return-value]


def _cpus(value: float | None) -> float | None:
    """Return a number of processors, checked."""
    if value is None:
        return None
    given: object = value
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given < float("inf"):
        raise ConfigError(f"cpus must be a number of processors above zero, not {value!r}.")
    return float(value)


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


@frozen(kw_only=True)
class Container:
    """
    Use containers of this machine, each a node.

    Args:
        image: What they are made from: it needs an OpenSSH server and a Python of the client's minor version.
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
        """Tell what holds here: nothing is billed, and a container can end itself."""
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
        environment = {"SKYWARD_LOGIN_KEY": request.cluster.key.public, "SKYWARD_HOST_KEY": host_key.private}
        words = ["run", "--detach", "--name", name, "--hostname", name, "--network", infra.name]
        words += ["--label", f"skyward.pool={request.cluster.pool_id}", "--label", f"skyward.node={node}"]
        words += ["--publish", "127.0.0.1::22"]
        for variable, value in environment.items():
            words += ["--env", f"{variable}={value}"]
        end = [self.image, "sh", "-c", _START]
        done = await attempt(binary, *words, *self._limits(), *end)
        if done.code and self._limits():
            await attempt(binary, "rm", "--force", name)
            again = await attempt(binary, *words, *end)
            if not again.code:
                _log.warning("%s supports no limits here, so %s has none: %s", binary, name, done.err[-200:])
                done = again
        if done.code:
            raise failed(binary, "run", done)
        return await self._instance(binary, name, node, request.cluster, host_key)

    def _limits(self) -> list[str]:
        limits = ["--cpus", f"{self.cpus:g}"] if self.cpus else []
        return limits + (["--memory", f"{int(self.memory * 1e9)}b"] if self.memory else [])

    async def _instance(self, binary: str, name: str, node: int, cluster: Cluster, host_key: KeyPair) -> Instance:
        form = "{{.State.Running}} {{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}"
        running, *addresses = (await command(binary, "inspect", "--format", form, name)).split()
        published = await attempt(binary, "port", name, "22")
        if running != "true" or published.code or not published.out:
            logs = await attempt(binary, "logs", "--tail", "5", name)
            said = "".join(f"\n  | {line}" for line in (logs.err or logs.out).splitlines())
            raise ProvisionError(f"Container {name} ended at once.{said}", provider="container")
        port = int(published.out.splitlines()[0].rpartition(":")[2])
        return Instance(
            id=name,
            node=node,
            provider="container",
            address=SSHAddress(
                host="127.0.0.1",
                port=port,
                user="root",
                private_key=cluster.key.private,
                host_key=host_key.public,
            ),
            instance_type=self.image,
            ip="127.0.0.1",
            private_ip=addresses[0] if addresses else None,
        )

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: Network) -> Sequence[Instance]:
        """List the pool's containers, found by their label."""
        form = '{{.Names}}\t{{.State}}\t{{.Label "skyward.node"}}'
        listed = await command(
            find_binary(self.binary),
            *("ps", "--all", "--filter", f"label=skyward.pool={cluster.pool_id}", "--format", form),
        )
        found = []
        for line in listed.splitlines():
            name, state, node = line.split("\t")
            running = InstanceState.RUNNING if state.lower() in ("running", "up") else InstanceState.ENDED
            found.append(Instance(id=name, node=int(node), provider="container", state=running))
        return found

    @hookimpl
    async def skyward_terminate(self, infra: Network, ids: Sequence[str]) -> None:
        """
        Remove containers, and wait until they are gone.

        Raises:
            ProvisionError: If one is still there.
        """
        binary = find_binary(self.binary)
        done = await asyncio.gather(*(attempt(binary, "rm", "--force", "--volumes", name) for name in ids))
        for name, result in zip(ids, done, strict=True):
            if result.code and "no such container" not in result.err.lower():
                raise failed(binary, f"rm {name}", result)

    @hookimpl
    async def skyward_release(self, infra: Network) -> None:
        """Remove the pool's network."""
        if infra.own:
            binary = find_binary(self.binary)
            done = await attempt(binary, "network", "rm", infra.name)
            if done.code and "not found" not in done.err.lower():
                raise failed(binary, "network rm", done)
