"""
The plugin: what it refuses, how many ranks nodes get, and which slice each of them sees.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from attrs import evolve, field, frozen

from skyward import ConfigError, Image, InstanceInfo
from skyward.hookspecs import Cluster, LaunchCommand, LaunchContext, Topology, hookimpl
from skyward.plugin import name_of
from skyward_mig import profiles

__all__ = ["Mig"]

SLICE = "SKYWARD_MIG_{rank}"
"""Environment variable of a node that names the slice of a rank."""

PROFILE = "SKYWARD_MIG_PROFILE"
"""Environment variable of a node that names the profile."""

_SEEN = 'export CUDA_VISIBLE_DEVICES="${@SLICE@:?}"; exec "$@"'


def _profile(value: object) -> str | None:
    """Return the profile, checked; None stays None."""
    return None if value is None else profiles.checked(value)


@frozen
class Mig:
    """
    Cut each GPU of the nodes into slices with memory and processors of their own, with a rank on each.

    All is undone when the node ends, whatever ends it.

    Args:
        profile: MIG profile of the slices, such as `"3g.40gb"`; None for the one that the accelerator is asked for
            with, as in `sky.accelerators.A100(mig="3g.40gb")`.

    Raises:
        ConfigError: If no accelerator has the profile.

    >>> Mig("3g.40gb").profile
    '3g.40gb'
    """

    profile: str | None = field(default=None, converter=_profile)
    name = "mig"

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot be cut, and layouts of ranks that do not fit."""
        profile = self._wanted(cluster)
        if any(name_of(plugin) == "mps" for plugin in cluster.spec.plugins):
            raise ConfigError(
                "A slice is to be had by one rank, and the plugin 'mps' has ranks share GPUs.",
                hint="Leave one of them out.",
            )
        if cluster.provider == "local" and cluster.nodes > 1:
            raise ConfigError(
                f"{cluster.nodes} nodes of sky.Local() are one machine, whose GPUs can be cut for one of them only.",
                hint="Ask for one node with more ranks: nodes=1, per_node=.",
            )
        if cluster.worker.per_node == "accelerator":
            raise ConfigError(
                'per_node="accelerator" gives each rank a whole GPU, which mig is to cut.',
                hint="Leave per_node out: each slice gets a rank.",
            )
        fit = _fit(cluster, profile)
        if fit is not None and cluster.ranks_per_node > fit:
            raise ConfigError(
                f"per_node={cluster.ranks_per_node} asks for more ranks than there are slices: each node has "
                f"{cluster.offer.accelerator_count:g} × {cluster.offer.accelerator_name}, which is {fit} × {profile}.",
                hint=f"Ask for {fit} or fewer, or leave per_node out.",
            )

    @hookimpl
    def skyward_topology(self, cluster: Cluster) -> Topology:
        """Have a rank on each slice, unless the user says how many ranks there are to be."""
        if cluster.worker.per_node != 1:
            return Topology(partitions=True)
        try:
            return Topology(ranks_per_node=_fit(cluster, self._wanted(cluster)), partitions=True)
        except ConfigError:
            # `skyward_validate` is asked next, and says so.
            return Topology(partitions=True)

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Tell nodes the profile, which may be the accelerator's."""
        return evolve(image, env={**image.env, PROFILE: self._wanted(cluster)})

    @hookimpl
    def skyward_launcher(self, command: LaunchCommand, context: LaunchContext) -> LaunchCommand:
        """Show a rank its slice, which has a name only when its node has been cut."""
        script = _SEEN.replace("@SLICE@", SLICE.format(rank=context.rank))
        env = {**command.env, "SKYWARD_DEVICE": str(context.rank)}
        return evolve(command, argv=("sh", "-c", script, "sh", *command.argv), env=env)

    @hookimpl
    @contextmanager
    def skyward_around_app(self, info: InstanceInfo) -> Iterator[None]:
        """Cut the GPUs, and put them together at the end."""
        from skyward_mig.keeping import kept

        with kept(os.environ[PROFILE], info) as devices:
            for rank, device in enumerate(devices):
                os.environ[SLICE.format(rank=rank)] = device
            yield

    def _wanted(self, cluster: Cluster) -> str:
        """Return the profile that is wanted, here or of the accelerator."""
        accelerator = cluster.spec.accelerator
        other = None if accelerator is None else accelerator.mig
        if self.profile is None and other is None:
            raise ConfigError("mig is not told into what to cut.", hint='Write for example sky.plugins.mig("3g.40gb").')
        if self.profile is not None and other not in (None, self.profile):
            raise ConfigError(
                f"mig is to cut into {self.profile!r}, and accelerator= asks for {other!r}.",
                hint="Leave one of them out.",
            )
        return self.profile or other or ""


def _fit(cluster: Cluster, profile: str) -> int | None:
    """Count the slices of a node; None on this machine, which is asked when the node starts."""
    offer = cluster.offer
    if cluster.provider == "local":
        return None
    accelerator = offer.accelerator
    if accelerator is None:
        raise ConfigError("mig cuts GPUs, and the nodes have none.", hint="Ask for: accelerator=.")
    if offer.accelerator_count < 1:
        raise ConfigError(f"The nodes have {offer.accelerator_count:g} of a GPU, and only a whole one can be cut.")
    return int(offer.accelerator_count) * profiles.slices(accelerator, profile)
