"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import field, frozen

from skyward import ConfigError, Image, InstanceInfo
from skyward.hookspecs import Cluster, hookimpl
from skyward.model.fields.requirement import check_named_once, version_of
from skyward.packages import importing, with_packages
from skyward.plugin import during
from skyward_accelerate.config import Config, config
from skyward_torch.plugin import Torch

__all__ = ["Accelerate"]


def _version(value: Any) -> str | None:
    """Return the version to install, checked."""
    return version_of(value, example="1.15.0")


@frozen
class Accelerate:
    """
    Install Accelerate on the nodes, configured in every broadcast as by `accelerate launch`.

    It brings `sky.plugins.torch()`, which brings PyTorch and the process group; where the pool has that plugin too, it
    stands before this one, and what it says holds.
    As a decorator of one function it does what concerns a call, on nodes that have Accelerate.

    Args:
        config: How to train: a `skyward_accelerate.config.Config`, a mapping with its names, or what
            `accelerate config` writes, as a mapping or the path of the file; None for what Accelerate does by itself.
            Keys of it that mean nothing here are named in a warning.
        version: Version of Accelerate, such as `"1.15.0"`; None or `"latest"` for the newest.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> Accelerate({"mixed_precision": "bf16"}).config.mixed_precision
    'bf16'
    """

    config: Config = field(default=None, converter=config)
    version: str | None = field(default=None, converter=_version, kw_only=True)
    name = "accelerate"

    @hookimpl
    def skyward_requires(self) -> tuple[Torch, ...]:
        """Add PyTorch's plugin."""
        return (Torch(),)

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot work, before anything is rented for it."""
        if self.config.needs_gpu and not cluster.offer.accelerator_count and cluster.provider != "local":
            raise ConfigError(
                f"{self.config.needs_gpu} needs GPUs, and the nodes have none.", hint="Ask for: accelerator=."
            )
        check_named_once(["accelerate"], self.version, cluster.spec.image.pip)

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the packages, unless nodes on this machine have them as it is."""
        wanted = [f"accelerate=={self.version}" if self.version else "accelerate"]
        if self.config.deepspeed:
            wanted.append("deepspeed")
        image = with_packages(image, wanted, cluster)
        # Again, because an environment that is made for these packages needs torch from its own index too.
        torch = next((plugin for plugin in cluster.spec.plugins if isinstance(plugin, Torch)), Torch())
        return torch.skyward_transform(image, cluster)

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load Accelerate before the first task."""
        with importing(self.name, info):
            from skyward_accelerate import state
        with state.CALLS.prepared(self.config):
            yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Set Accelerate's environment variables around the call, within the process group."""
        from skyward_accelerate.state import CALLS

        return during(lambda: CALLS.around(self.config))(fn)
