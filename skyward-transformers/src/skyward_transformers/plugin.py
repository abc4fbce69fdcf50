"""
The plugin: what it refuses, what nodes get, and what is around processes and tasks.

What is around calls is Accelerate's, which `Trainer` trains with, and PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from attrs import field, frozen

from skyward import ConfigError, Image, InstanceInfo
from skyward.hookspecs import Cluster, hookimpl
from skyward.model.fields.requirement import check_named_once, version_of
from skyward.packages import importing, with_packages
from skyward_accelerate.plugin import Accelerate
from skyward_torch.plugin import Torch

__all__ = ["Transformers"]

T = TypeVar("T")


def _version(value: Any) -> str | None:
    """Return the version to install, checked."""
    return version_of(value, example="5.23.0")


@frozen
class Transformers:
    """
    Have Transformers on the nodes, and its `Trainer` train on all ranks of a broadcast.

    It brings the plugins of Accelerate and PyTorch; where the pool has them too, they stand before this one, and what
    they say holds.
    As a decorator of one function it does what concerns a call, on nodes that have Transformers.

    Args:
        version: Version of Transformers, such as `"5.23.0"`; None or `"latest"` for the newest.
        backend: Backend of the process group, as `sky.plugins.torch(backend=...)` takes it; where the pool has that
            plugin, it says so there.

    Raises:
        ConfigError: If a value is none of what its field takes, or the pool's plugin of PyTorch has another backend.

    >>> Transformers("5.23.0").version
    '5.23.0'
    """

    version: str | None = field(default=None, converter=_version)
    backend: str | None = field(default=None, kw_only=True)
    name = "transformers"

    def __attrs_post_init__(self) -> None:
        Torch(backend=self.backend)

    @hookimpl
    def skyward_requires(self) -> tuple[Torch | Accelerate, ...]:
        """Add the plugins of PyTorch and of Accelerate."""
        return Torch(backend=self.backend), Accelerate()

    @hookimpl
    def skyward_validate(self, cluster: Cluster) -> None:
        """Refuse what cannot work, before anything is rented for it."""
        check_named_once(["transformers"], self.version, cluster.spec.image.pip)
        torch = _beneath(Torch, cluster)
        if self.backend is not None and torch.backend != self.backend:
            raise ConfigError(
                f"backend={self.backend!r} is asked of transformers, and the plugin 'torch' has {torch.backend!r}.",
                hint=f"Write it there: sky.plugins.torch(backend={self.backend!r}).",
            )

    @hookimpl
    def skyward_transform(self, image: Image, cluster: Cluster) -> Image:
        """Add the packages, unless nodes on this machine have them as it is."""
        wanted = f"transformers=={self.version}" if self.version else "transformers"
        image = with_packages(image, [wanted], cluster)
        # Again, because an environment that is made for this package needs the others too.
        return _beneath(Accelerate, cluster).skyward_transform(image, cluster)

    @hookimpl
    @contextmanager
    def skyward_around_process(self, info: InstanceInfo) -> Iterator[None]:
        """Load Transformers before the first task."""
        with importing(self.name, info):
            import transformers  # noqa: F401  # imported for its effect
        yield

    @hookimpl
    def skyward_decorate(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Load what the call needs; what is around it is Accelerate's."""
        import transformers  # noqa: F401  # imported for its effect

        return fn


def _beneath(kind: type[T], cluster: Cluster) -> T:
    """Return the pool's plugin of a class."""
    return next((plugin for plugin in cluster.spec.plugins if isinstance(plugin, kind)), kind())
