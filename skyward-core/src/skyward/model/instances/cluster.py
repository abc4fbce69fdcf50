"""
What hooks get to know about the pool they work for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.setting import whole
from skyward.model.fields.variables import Variables, variables
from skyward.model.instances.key_pair import KeyPair
from skyward.model.spec.worker_layout import Worker

if TYPE_CHECKING:
    from skyward.model.instances.offer import Offer
    from skyward.model.spec.spec import Spec

__all__ = ["Cluster", "KeyPair", "LaunchCommand", "LaunchContext", "Topology"]


def _ranks(value: int | None) -> int | None:
    """Return the number of ranks a plugin wants, checked."""
    return None if value is None else whole(value, "ranks_per_node", least=1)


def _argv(value: Iterable[str]) -> tuple[str, ...]:
    """Return a command line, in which there has to be a program."""
    if isinstance(value, (str, bytes)):
        raise ConfigError(f"argv must be a list of words, not the text {value!r}.", hint="Write one word for each.")
    argv = tuple(value)
    if not argv or not argv[0]:
        raise ConfigError("argv must begin with a program.")
    words: tuple[object, ...] = argv
    for word in words:
        if not isinstance(word, str) or "\0" in word:
            raise ConfigError(f"argv must be a list of text, but holds {word!r}.")
    return argv


def _env(value: Mapping[str, str]) -> Variables:
    """Return the environment of a command, checked."""
    return variables(value, "env")


def _names(variables: Variables) -> str:
    """Return the names of variables without their text, which may be secret."""
    return "{" + ", ".join(f"{name!r}: ..." for name in variables) + "}"


@frozen(kw_only=True)
class Cluster:
    """
    Describe a pool as it was decided on; what hooks of providers and plugins get.

    Args:
        pool_id: Identity of this use of the pool; whatever is rented for it is tagged with it.
        pool_name: What the user calls the pool.
        spec: What the user asked for.
        offer: What was chosen to meet it.
        provider: Name of the provider that sells it.
        nodes: How many nodes the pool has when it is complete.
        ranks_per_node: How many ranks each node has.
        worker: How tasks are laid out on a node.
        nodes_reach_each_other: Whether the nodes have a network of their own between them.
        joined: Whether its nodes are to work together: True or False as `cluster=` says, None where it is not said.
        key: What lets us in at the pool's machines; a provider has its public half let in, and gives its private half
            to `SSHAddress`.

    >>> from skyward.model.instances.offer import Offer
    >>> from skyward.model.spec.spec import Spec
    >>> offer = Offer(provider="local", instance_type="local")
    >>> Cluster(pool_id="a1", pool_name="train", spec=Spec(), offer=offer, provider="local", nodes=2).total_ranks
    2
    """

    pool_id: str
    pool_name: str
    spec: Spec
    offer: Offer
    provider: str
    nodes: int
    ranks_per_node: int = 1
    worker: Worker = field(factory=Worker)
    nodes_reach_each_other: bool = True
    joined: bool | None = None
    key: KeyPair = field(factory=KeyPair, repr=False, eq=False)

    @property
    def total_ranks(self) -> int:
        """Return how many ranks the pool has on all nodes together."""
        return self.nodes * self.ranks_per_node


@frozen(kw_only=True)
class Topology:
    """
    Say how a plugin wants the pool's ranks to be laid out and to work together.

    Args:
        ranks_per_node: How many ranks each node must have; None leaves it to the user and the other plugins.
        collective: Whether the ranks of a broadcast form one job, in which none can go on without the others.
        meeting: What the ranks meet by at the head's `head_port`, such as `"torch"`; None if they do not.
        partitions: Whether the plugin cuts the nodes' accelerators into the slices that `Accelerator(mig=)` asks for.

    Raises:
        ConfigError: If the number is no whole number of at least 1.

    >>> Topology(ranks_per_node=7, collective=True).ranks_per_node
    7
    """

    ranks_per_node: int | None = field(default=None, converter=_ranks)
    collective: bool = False
    meeting: str | None = None
    partitions: bool = False


@frozen(kw_only=True)
class LaunchCommand:
    """
    Say how a worker process is started.

    Args:
        argv: Program and arguments.
        env: Environment variables, added to those that the worker has anyway; the repr shows only their names.

    Raises:
        ConfigError: If there is no program, or a value is none of what its field takes.

    >>> command = LaunchCommand(argv=["python", "-m", "worker"], env={"OMP_NUM_THREADS": "1"})
    >>> command.argv
    ('python', '-m', 'worker')
    """

    argv: tuple[str, ...] = field(converter=_argv)
    env: Variables = field(factory=Variables, converter=_env, repr=_names)


@frozen(kw_only=True)
class LaunchContext:
    """
    Say which worker process is about to be started.

    Args:
        cluster: The pool it belongs to.
        node: Index of its node, from 0.
        rank: Index of its rank within the node, from 0.
        lane: Index of the process within the node, from 0; a rank has several with `executor="process"`.
    """

    cluster: Cluster
    node: int
    rank: int
    lane: int
