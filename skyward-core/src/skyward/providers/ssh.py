"""The provider of machines that one has: hosts reached over SSH, and cleaned up on exit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from skyward.errors import CapacityError, ConfigError, NoAvailableProviderError, NodeError, SkywardError
from skyward.hookspecs import hookimpl
from skyward.model.accelerators.accelerator import recognise
from skyward.model.fields.host_place import place
from skyward.model.fields.setting import suggesting
from skyward.model.instances.machine import Instance, ProviderFacts, SSHAddress, Trust
from skyward.model.instances.offer import Offer

if TYPE_CHECKING:
    from skyward.model.instances.cluster import Cluster
    from skyward.model.instances.machine import LaunchRequest
    from skyward.model.spec.spec import Spec
    from skyward.ssh.probe import Findings

_log = logging.getLogger(__name__)

LOOKING = 15.0
"""Seconds in which a host has to answer when a pool is opened."""

ANSWERING = 30.0
"""Seconds that a host has to say what it has."""

CLEANING = 60.0
"""Seconds that a host has to empty its cache."""

_SSH_PORT = 22


def _hosts(value: Iterable[str | SSHAddress]) -> tuple[str | SSHAddress, ...]:
    """Return hosts as a tuple, checked."""
    given: object = value
    if isinstance(given, (str, SSHAddress)):
        raise ConfigError(f"hosts must be a list of hosts, not {str(given)!r}.", hint="Put it into brackets.")
    hosts: tuple[Any, ...] = tuple(value)
    if not hosts:
        raise ConfigError("hosts must name at least one host, but is empty.")
    for host in hosts:
        if not isinstance(host, SSHAddress) and (not isinstance(host, str) or not host.strip()):
            raise ConfigError(f"hosts must be names of hosts such as 'user@host:22', not {host!r}.")
    return hosts


@suggesting
@frozen
class SSH:
    """
    Use machines that one has already, over SSH.

    Nothing is installed outside Skyward's own cache there, and nothing runs there when the pool is left.
    A host takes one node of a pool; several pools may share it.

    Args:
        hosts: Where they are: `"gpu-box"`, `"ubuntu@10.0.0.5"`, `"ubuntu@10.0.0.5:2222"`, `"[::1]:22"`, or values.
        user: Name to log in with, where a host names none; else what `~/.ssh/config` says.
        key: Path of a private key; else the user's agent, keys and `~/.ssh/config`.
        port: TCP port, where a host names none.
        jump: Host to go through, as `user@host:port`, or several with commas between them; else what `~/.ssh/config`
            says.
        known_hosts: Path of the file of known host keys; None is `~/.ssh/known_hosts`.
        trust: `"first-use"` takes the key of a host that was never seen, and remembers it; `"known"` refuses it.
            A key that changed is refused always.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> SSH(hosts=["gpu-box", "ubuntu@10.0.0.5:2222"]).addresses[1].port
    2222
    """

    hosts: tuple[str | SSHAddress, ...] = field(converter=_hosts)
    user: str | None = field(default=None, kw_only=True)
    key: str | None = field(default=None, kw_only=True)
    port: int = field(default=_SSH_PORT, kw_only=True)
    jump: str | None = field(default=None, kw_only=True)
    known_hosts: str | None = field(default=None, kw_only=True)
    trust: Trust = field(default="first-use", kw_only=True)

    def __attrs_post_init__(self) -> None:
        seen: dict[tuple[str | None, str, int | None], SSHAddress] = {}
        for address in self.addresses:
            key = (address.user, address.host, address.port)
            if key in seen:
                raise ConfigError(f"hosts names {str(address)!r} twice.")
            seen[key] = address

    @property
    def addresses(self) -> tuple[SSHAddress, ...]:
        """
        Return the address of each host.

        Raises:
            ConfigError: If one is no host.
        """
        return tuple(host if isinstance(host, SSHAddress) else self._address(host) for host in self.hosts)

    def _address(self, host: str) -> SSHAddress:
        user, name, port = place(host, "hosts")
        if port is None and self.port != _SSH_PORT:
            port = self.port
        return SSHAddress(
            host=name,
            port=port,
            user=user or self.user,
            keys=(self.key,) if self.key else (),
            jump=self.jump,
            known_hosts=self.known_hosts,
            trust=self.trust,
        )

    def clean(self) -> dict[str, tuple[str, ...]]:
        """
        Clear Skyward's cache on every host: environments, and our own side.

        Only what Skyward made is removed: a directory that `SKYWARD_CACHE` names may hold more.
        Pools that use a host at this moment would miss what is gone. Not to be called in an event loop.

        Returns:
            For each host whose cache is still there, by its address: what else is in it.

        Raises:
            SkywardError: If that failed on a host; all others are clean then.
        """
        return asyncio.run(self._clean())

    async def _clean(self) -> dict[str, tuple[str, ...]]:
        done = await asyncio.gather(*map(_clean, self.addresses), return_exceptions=True)
        each = list(zip(self.addresses, done, strict=True))
        failures = [(address, error) for address, error in each if isinstance(error, BaseException)]
        if len(failures) == 1 or any(not isinstance(error, SkywardError) for _, error in failures):
            raise next(error for _, error in failures)
        if failures:
            listed = "".join(f"\n  {address}: {error}" for address, error in failures)
            raise NodeError(f"{len(failures)} of {len(done)} hosts could not be cleaned:{listed}", provider="ssh")
        return {str(address): kept for address, kept in each if isinstance(kept, tuple) and kept}

    @hookimpl
    def skyward_facts(self) -> ProviderFacts:
        """Return what holds here: nothing is billed, and nodes are expected to reach each other."""
        return ProviderFacts(name="ssh", ends_own_bill=True, rents=False)

    @hookimpl
    async def skyward_offers(self, spec: Spec) -> Sequence[Offer]:
        """
        Look at every host, and offer each that has what is asked for.

        Raises:
            SkywardError: If too few answer.
            NoAvailableProviderError: If too few have what is asked for.
        """
        wanted = spec.nodes.desired
        if wanted > len(self.addresses):
            raise CapacityError(
                f"The pool wants {wanted} nodes and sky.SSH has {len(self.addresses)} hosts, each of which takes one.",
                provider="ssh",
            )
        found = await asyncio.gather(*map(_look, self.addresses), return_exceptions=True)
        offers, refusals = [], []
        failure: SkywardError | None = None
        for address, findings in zip(self.addresses, found, strict=True):
            if isinstance(findings, SkywardError):
                failure = failure or findings
                _log.warning("%s is left out: %s", address, findings)
            elif isinstance(findings, BaseException):
                raise findings
            elif lacking := _lacking(findings, spec):
                refusals.append(f"\n  {address} {lacking}")
            else:
                offers.append(_offer(address, findings))
        if len(offers) < wanted and failure is not None and not refusals:
            raise failure
        if len(offers) < wanted:
            raise NoAvailableProviderError(
                f"{len(offers)} of {len(self.addresses)} hosts have what is asked for, and {wanted} are wanted:"
                f"{''.join(refusals)}{f' ({failure})' if failure else ''}",
                provider="ssh",
            )
        return offers

    @hookimpl
    async def skyward_launch(self, request: LaunchRequest, infra: None) -> Sequence[Instance]:
        """
        Take hosts: a node's own, or where that is to be avoided the last one that is free.

        Raises:
            CapacityError: If there are more nodes than hosts.
        """
        addresses = self.addresses
        if max(request.nodes) >= len(addresses):
            raise CapacityError(f"There are only {len(addresses)} hosts.", provider="ssh")
        avoided = set(request.avoid)
        taken = {node: addresses[node] for node in request.nodes if str(addresses[node]) not in avoided}
        own = {str(address) for address in taken.values()}
        spare = [address for address in addresses if str(address) not in avoided | own]
        lacking = [node for node in request.nodes if node not in taken]
        if len(lacking) > len(spare):
            raise CapacityError(
                f"None of the {len(addresses)} hosts is left: the others have nodes, or failed their checks twice.",
                provider="ssh",
            )
        taken |= {node: spare.pop() for node in lacking}
        return [_instance(taken[node], node) for node in request.nodes]

    @hookimpl
    async def skyward_instances(self, cluster: Cluster, infra: None) -> Sequence[Instance]:
        """List the hosts: they exist, whatever is done with them."""
        return [_instance(address, node) for node, address in enumerate(self.addresses)]

    @hookimpl
    async def skyward_terminate(self, infra: None, ids: Sequence[str]) -> None:
        """Do nothing: a node has left its host already, and the host is its owner's."""


async def _clean(address: SSHAddress) -> tuple[str, ...]:
    """Clear the cache of a host, and return what else is in it."""
    from skyward.plan.bootstrap.cache_text import clean
    from skyward.ssh.dial import dial
    from skyward.ssh.shell import run

    async with await dial(address, patience=LOOKING) as connection:
        done = await run(connection, clean(), timeout=CLEANING)
    if done.code:
        lines = done.err.strip().splitlines()[-3:]
        raise NodeError(f"The cache on {address} could not be emptied: {' '.join(lines)}", provider="ssh")
    return tuple(line.removeprefix("kept=") for line in done.out.splitlines() if line.startswith("kept="))


async def _look(address: SSHAddress) -> Findings:
    """Look at a host, and have what comes next find it logged in to."""
    from skyward.ssh.dial import dial
    from skyward.ssh.visits import keep, visit

    connection = await dial(address, patience=LOOKING)
    try:
        made = await visit(connection, timeout=ANSWERING)
    except BaseException:
        connection.close()
        raise
    keep(address, made)
    return made.found


def _offer(address: SSHAddress, found: Findings) -> Offer:
    gpu = found.gpus[0] if found.gpus else None
    return Offer(
        provider="ssh",
        instance_type=str(address),
        vcpus=found.vcpus,
        memory_gb=found.memory_gb,
        accelerator_name=gpu.name if gpu else None,
        accelerator_count=len(found.gpus),
        accelerator_memory_gb=gpu.memory_gb if gpu else None,
        architecture="arm64" if found.machine in ("aarch64", "arm64") else "x86_64",
        on_demand_price=0.0,
    ).normalised()


def _lacking(found: Findings, spec: Spec) -> str:
    """Return what a host lacks of what is asked for; nothing if it has it all."""
    if spec.vcpus and found.vcpus < spec.vcpus:
        return f"has {found.vcpus:g} processors, and vcpus={spec.vcpus:g} are wanted."
    if spec.memory_gb and found.memory_gb < spec.memory_gb:
        return f"has {found.memory_gb:g} GB of memory, and memory_gb={spec.memory_gb:g} are wanted."
    if spec.accelerator is not None:
        gpus = found.gpus
        if not gpus:
            return f"has no accelerator that nvidia-smi knows, and {spec.accelerator} is wanted."
        if not spec.accelerator.accepts(recognise(gpus[0].name, count=len(gpus), memory_gb=gpus[0].memory_gb)):
            return f"has {len(gpus)} × {gpus[0].name}, and {spec.accelerator} is wanted."
    return ""


def _instance(address: SSHAddress, node: int) -> Instance:
    return Instance(
        id=str(address),
        node=node,
        provider="ssh",
        address=address,
        instance_type=address.host,
        ip=address.host,
        private_ip=address.host,
        rented=False,
    )
