"""
Rented machines, and what a provider reports of itself and them.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import TYPE_CHECKING, Literal, TypeAlias

from attrs import evolve, field, frozen
from attrs.converters import optional

from skyward.errors import ConfigError
from skyward.model.fields.fingerprint import sha256_fingerprint
from skyward.model.fields.host_place import places
from skyward.model.fields.port import port
from skyward.model.fields.setting import choice, text, texts, waiting
from skyward.model.instances.tags import Tags

if TYPE_CHECKING:
    from skyward.model.instances.cluster import Cluster
    from skyward.model.instances.machine_image import MachineImage

__all__ = ["Address", "Instance", "InstanceState", "LaunchRequest", "LocalAddress", "ProviderFacts", "SSHAddress"]


class InstanceState(Enum):
    """What a provider says about a machine's life."""

    PENDING = "pending"
    """It was granted and does not run yet; it may have no address. Reported for one that runs, it is never dialled."""

    RUNNING = "running"
    """It runs and has an address. Reported too early, dialling it fails and is tried again."""

    ENDING = "ending"
    """Its termination was requested, by us or the provider; it may still be billed. Its node is replaced at once."""

    ENDED = "ended"
    """It is gone and costs nothing. Reported too early, it is no longer watched and still billed."""


def _directory(value: str) -> str:
    """Return a directory, checked."""
    return text(value, "directory")


def _name(value: str) -> str:
    """Return a provider's name, checked."""
    return text(value, "name")


def _regions(value: Iterable[str]) -> tuple[str, ...]:
    """Return the names of regions, checked."""
    return texts(value, "regions")


def _words(value: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a command, checked."""
    return texts(value, "end_command")


def _avoided(value: Iterable[str]) -> tuple[str, ...]:
    """Return the ids of machines, checked."""
    return texts(value, "avoid")


def _asking(value: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a command, checked."""
    # It may be a script of many lines.
    words = () if isinstance(value, str) else tuple(value)
    if isinstance(value, str) or not all(isinstance(word, str) for word in words):
        raise ConfigError(f"notice_command must be the words of a command, not {value!r}.")
    return words


def _nodes(value: Iterable[int]) -> tuple[int, ...]:
    """Return indices of nodes as a tuple."""
    return tuple(value)


@frozen
class LocalAddress:
    """
    Say that a machine is this one, and where on it the node lives.

    Args:
        directory: Absolute path of a directory that the node has to itself; it is made where it is missing.

    >>> LocalAddress("/tmp/node-0").directory
    '/tmp/node-0'
    """

    directory: str = field(converter=_directory)


Trust = Literal["known", "first-use"]
"""Which host keys are accepted: only those that are known, or also that of a host that was never seen."""


def _host(value: str) -> str:
    """Return a host's name, checked."""
    return text(value, "host")


def _port(value: int) -> int:
    """Return the number of a TCP port, checked."""
    return port(value, "port")


def _jump(value: str) -> str:
    """Return the hosts to go through, checked."""
    places(text(value, "jump"), "jump")
    return value


def _trust(value: Trust) -> Trust:
    """Return which host keys are accepted, checked."""
    return "known" if choice(value, "trust", ("known", "first-use")) == "known" else "first-use"


def _keys(value: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of private keys, checked."""
    return texts(value, "keys")


def _fingerprints(value: Iterable[str]) -> tuple[str, ...]:
    """Return fingerprints of host keys, checked, as OpenSSH prints them."""
    return tuple(sha256_fingerprint(each, "fingerprints") for each in texts(value, "fingerprints"))


def _proxy(value: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a command that leads to a machine, checked."""
    return texts(value, "proxy_command")


@frozen(kw_only=True)
class SSHAddress:
    """
    Say how a machine is reached over SSH.

    Args:
        host: Name or address, or what `~/.ssh/config` calls it.
        port: TCP port; None is what `~/.ssh/config` says, else 22.
        user: Name to log in with; None is what `~/.ssh/config` says, else the client's own.
        keys: Paths of private keys to try; none means the user's agent, keys and `~/.ssh/config`.
        private_key: A private key's text, for a machine that was made for this pool.
        jump: Host to go through, as `user@host:port`, or several with commas between them; None is what `~/.ssh/config`
            says, `"none"` is none whatever it says.
        proxy_command: Command whose input and output lead to the machine; none to connect to it directly.
        known_hosts: Path of the file of known host keys; None is `~/.ssh/known_hosts`.
        trust: Which host keys are accepted.
        host_key: The only host key that is accepted, as in a file of known hosts; for a machine whose key was chosen.
        fingerprints: SHA256 fingerprints of the host keys that are accepted, and no others, such as
            `"SHA256:47DEQpj8HBSa…"`; for a machine whose keys the cloud lists by fingerprint. `host_key` wins.
        settling_s: Seconds after its first answer in which a machine may still have another host key, or refuse logins
            yet, because what it does at its first boot runs beside its SSH server; nothing is sent to it until then.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> SSHAddress(host="10.0.0.5", user="ubuntu").trust
    'first-use'
    """

    host: str = field(converter=_host)
    port: int | None = field(default=None, converter=optional(_port))
    user: str | None = None
    keys: tuple[str, ...] = field(default=(), converter=_keys)
    private_key: str | None = field(default=None, repr=False)
    jump: str | None = field(default=None, converter=optional(_jump))
    proxy_command: tuple[str, ...] = field(default=(), converter=_proxy)
    known_hosts: str | None = None
    trust: Trust = field(default="first-use", converter=_trust)
    host_key: str | None = None
    fingerprints: tuple[str, ...] = field(default=(), converter=_fingerprints)
    settling_s: float = field(default=0.0, validator=waiting)

    def __str__(self) -> str:
        user = f"{self.user}@" if self.user else ""
        return f"{user}{self.host}{f':{self.port}' if self.port else ''}"


Address: TypeAlias = LocalAddress | SSHAddress
"""How the client reaches a machine."""


@frozen(kw_only=True)
class Instance:
    """
    Describe a rented machine.

    Args:
        id: The provider's name for it, by which it is terminated.
        node: Index of the node it was rented for.
        provider: The provider's name.
        state: What the provider says about its life.
        address: How the client reaches it; None until it can be reached.
        instance_type: The provider's name for this kind of machine.
        region: Where it is, as the provider calls it.
        spot: Whether the provider may reclaim it.
        hourly_rate: What it costs, in USD per hour.
        on_demand_rate: What it would cost on demand, in USD per hour.
        ip: Address that the client reaches it at.
        private_ip: Address that the pool's other nodes reach it at.
        tags: What is written on it; None where the provider cannot say.
        launched_at: When it was rented, in seconds since 1970; None where the provider cannot say.
        doing: What a machine that does not run yet is doing, such as `"image pull"`, reported as a phase of the
            bootstrap; None where the provider says nothing.
        reason: Why a machine that is `ENDING` or `ENDED` is of no use, such as `"the image could not be pulled"`, for
            the pool's error and log; None where the provider gives no reason.
        rented: Whether it was rented for a pool; False for a host that exists without any pool, so that a list that
            shows it does not make it an orphan.

    >>> Instance(id="i-0abc", node=0, provider="aws", state=InstanceState.PENDING).address is None
    True
    """

    id: str
    node: int
    provider: str
    state: InstanceState = InstanceState.RUNNING
    address: Address | None = None
    instance_type: str | None = None
    region: str | None = None
    spot: bool = False
    hourly_rate: float | None = None
    on_demand_rate: float | None = None
    ip: str | None = None
    private_ip: str | None = None
    tags: Tags | None = None
    launched_at: float | None = None
    doing: str | None = None
    reason: str | None = None
    rented: bool = True


@frozen(kw_only=True)
class LaunchRequest:
    """
    Ask a provider for machines, one for each node named.

    Args:
        cluster: The pool they are for, with the offer to be rented.
        nodes: Indices of the nodes.
        token: Names this request and no other: a repeated one with the same token must not rent twice.
        spot: Whether the machines may be reclaimed.
        tags: What is to be written on each of them in the call that rents it, besides its node.
        machine_image: What they boot from, one that the provider listed for the cluster; None is what it takes by
            itself.
        avoid: Ids of machines that must not be taken, because nodes of the pool have them or because they failed their
            health checks twice; it concerns only providers whose machines are there anyway.
    """

    cluster: Cluster
    nodes: tuple[int, ...] = field(converter=_nodes)
    token: str
    spot: bool = False
    tags: Tags = field()
    machine_image: MachineImage | None = None
    avoid: tuple[str, ...] = field(default=(), converter=_avoided)

    @tags.default
    def _only_the_pool(self) -> Tags:
        return Tags(pool_id=self.cluster.pool_id, pool_name=self.cluster.pool_name, token=self.token)

    def tags_of(self, node: int) -> Tags:
        """
        Return what is to be written on the machine of one node.

        Args:
            node: Index of the node.
        """
        return evolve(self.tags, node=node)


EndsOwnBill = bool | Literal["running"]
"""When a machine can end its own billing: always, only once it runs, or never."""


def _ends_own_bill(value: EndsOwnBill) -> EndsOwnBill:
    """Return in which states a machine ends its own bill, checked."""
    given: object = value
    if not isinstance(given, bool) and given != "running":
        raise ConfigError(f'ends_own_bill must be True, "running" or False, not {value!r}.')
    return value


@frozen(kw_only=True)
class ProviderFacts:
    """
    Say what holds for a provider, whatever is rented from it.

    Args:
        name: Its name in offers, events and errors: lower case, and the same for all values of its class.
        ends_own_bill: Whether a machine can end its own billing, without a credential of the account: `True` in every
            state from the launch on, `"running"` only once it runs, `False` never. In the states in which it cannot, a
            guardian on the client's computer does; provider and infra have to be picklable then.
        billing_granularity_s: The shortest time that is billed, in seconds; None where nothing is billed.
        nodes_reach_each_other: Whether its machines have a network of their own between them.
        spot: Whether it sells machines that it may reclaim.
        regions: Where it sells, as it calls these places; empty where it has no regions.
        end_command: What a machine runs to terminate itself, so that the billing stops, when it has no heartbeat from
            its client for `ttl` seconds; empty where it is not ours to terminate.
        minimum_billed_s: Seconds that are billed at least, however short a machine lived.
        offers_ttl_s: How long what it sells may be kept before it is asked again, in seconds; 0 for not at all.
        offers_key: What else its offers depend on beside the provider's fields, such as the account; only a digest of
            it is written down.
        notice_command: What a spot machine runs every five seconds to learn that it is reclaimed. It prints nothing as
            long as that is not so, else a JSON object: `reason`, `certain` (false for a mere recommendation to leave),
            and `at`, the end in seconds since 1970. Empty where that cannot be known.
        rents: Whether a launch makes machines and ending takes them away; False where they are there anyway.
        machine_images: Whether it keeps images of machines that others boot from: its hooks for machine images.
        strangers: Whether its machines belong to third parties, neither the user nor the provider: what nodes send is
            opened as data then, unless the spec's `trust` says otherwise.
        disks: How many disks that the user keeps there it attaches to a machine at most, see `sky.Disk`; 0 for none.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> ProviderFacts(name="local", ends_own_bill=True).spot
    False
    """

    name: str = field(converter=_name)
    ends_own_bill: EndsOwnBill = field(converter=_ends_own_bill)
    billing_granularity_s: float | None = None
    nodes_reach_each_other: bool = True
    spot: bool = False
    regions: tuple[str, ...] = field(default=(), converter=_regions)
    end_command: tuple[str, ...] = field(default=(), converter=_words)
    minimum_billed_s: float = field(default=0.0, validator=waiting)
    offers_ttl_s: float = field(default=300.0, validator=waiting)
    offers_key: str = field(default="", repr=False)
    notice_command: tuple[str, ...] = field(default=(), converter=_asking)
    rents: bool = True
    machine_images: bool = False
    strangers: bool = False
    disks: int = 0
