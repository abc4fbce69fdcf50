"""
The plugin: what it refuses, and the daemon around a node.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import field, frozen

from skyward import ConfigError, InstanceInfo
from skyward.hookspecs import Cluster, hookimpl
from skyward.model.fields.memory import gigabytes
from skyward.plugin import name_of

__all__ = ["CLIENTS", "Mps", "mps"]

CLIENTS = 48
"""Processes that a GPU takes at once, from the generation Volta on."""

EARLIER = {"Kepler": 16, "Maxwell": 16, "Pascal": 16}
"""The same of generations before it."""


def _percentage(value: object) -> float | None:
    """Return a share of a GPU's processors, checked."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 100:
        raise ConfigError(f"active_thread_percentage must be more than 0 and at most 100, not {value!r}.")
    return float(value)


def _memory(value: object) -> float | None:
    """Return an amount of memory in GB, checked."""
    if value is None:
        return None
    amount = gigabytes(value, "pinned_memory_limit")
    if amount * 1024 < 1:
        raise ConfigError(f"pinned_memory_limit must be 1 MB or more, not {value!r}.")
    return amount


@frozen
class Mps:
    """
    Have the processes of a node use its GPUs side by side, and not in turn.

    The daemon that does so has directories of its own and ends with the node.

    Args:
        active_thread_percentage: Share of a GPU's processors that a process may use at most, in percent; None for all.
        pinned_memory_limit: How much of each GPU's memory one process may take at most, in GB or as text such as
            `"10GB"`; None for all.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Mps(active_thread_percentage=25, pinned_memory_limit="512MB")
    Mps(active_thread_percentage=25.0, pinned_memory_limit=0.5)
    """

    active_thread_percentage: float | None = field(default=None, converter=_percentage)
    pinned_memory_limit: float | None = field(default=None, converter=_memory)
    name = "mps"

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse nodes without NVIDIA's GPUs, more processes than those take, and limits that they do not have."""
        if any(name_of(plugin) == "mig" for plugin in cluster.spec.plugins):
            raise ConfigError(
                "mps has ranks share GPUs, and the plugin 'mig' gives each a slice.", hint="Leave one of them out."
            )
        if cluster.provider == "local":
            if cluster.nodes > 1:
                raise ConfigError(
                    f"{cluster.nodes} nodes of sky.Local() are one machine, whose GPUs take one daemon.",
                    hint="Ask for one node with more ranks: nodes=1, per_node=.",
                )
            return
        accelerator = cluster.offer.accelerator
        if accelerator is None:
            raise ConfigError("mps shares GPUs, and the nodes have none.", hint="Ask for: accelerator=.")
        if accelerator.manufacturer not in (None, "NVIDIA"):
            raise ConfigError(f"mps is NVIDIA's, and the nodes have {accelerator.name} of {accelerator.manufacturer}.")
        if self.pinned_memory_limit is not None and self.pinned_memory_limit > (
            accelerator.known_memory_gb or float("inf")
        ):
            raise ConfigError(
                f"pinned_memory_limit={self.pinned_memory_limit:g} GB is more than {accelerator} has, "
                "and would limit nothing."
            )
        most = EARLIER.get(accelerator.architecture or "", CLIENTS)
        worker = cluster.worker
        ranks = 1 if worker.per_node == "accelerator" else cluster.ranks_per_node
        processes = ranks * worker.processes_per_rank
        if processes > most:
            raise ConfigError(
                f"{processes} processes may want one GPU, and MPS takes {most} on {accelerator.name}.",
                hint="Lower per_node= or concurrency=.",
            )

    @hookimpl
    @contextmanager
    def skyward_around_app(self, info: InstanceInfo) -> Iterator[None]:
        """Start the daemon before the workers, set its address for them, and end it after them."""
        from skyward_mps.daemon import running

        with running(info, self.active_thread_percentage, self.pinned_memory_limit) as variables:
            os.environ.update(variables)
            yield


def mps(
    active_thread_percentage: float | None = None,
    pinned_memory_limit: float | str | None = None,
    *,
    pinned_memory: float | str | None = None,
) -> Mps:
    """
    Make the plugin.

    Args:
        active_thread_percentage: As `Mps` has it.
        pinned_memory_limit: As `Mps` has it.
        pinned_memory: The same by an earlier name.

    Raises:
        ConfigError: If a value is none of what its parameter takes, or one limit is given by both names.

    >>> mps(pinned_memory_limit="2GB") == mps(pinned_memory="2GB")
    True
    """
    if pinned_memory_limit is not None and pinned_memory is not None:
        raise ConfigError("pinned_memory is pinned_memory_limit by an earlier name.", hint="Leave it out.")
    return Mps(active_thread_percentage, pinned_memory if pinned_memory_limit is None else pinned_memory_limit)
