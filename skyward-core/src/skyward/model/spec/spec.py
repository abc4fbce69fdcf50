"""
What a user asks a provider for.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any, Literal, TypeAlias, cast

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.accelerators.accelerator import Accelerator, AcceleratorLike, accelerator
from skyward.model.fields.duration import seconds
from skyward.model.fields.memory import gigabytes
from skyward.model.fields.setting import choice, lasting, positive, suggesting, text
from skyward.model.spec.allocation import Allocation, AllocationLike, allocation
from skyward.model.spec.image import Image
from skyward.model.spec.nodes import Nodes, NodeSpec, nodes
from skyward.model.spec.trust_setting import Data, trusted
from skyward.model.spec.volumes import VolumeLike, volumes

__all__ = ["Architecture", "Spec"]

Architecture = Literal["x86_64", "arm64"]

_OTHER_ARCHITECTURES = {"amd64": "x86_64", "x86-64": "x86_64", "x64": "x86_64", "aarch64": "arm64"}


def _provider(value: Any) -> Any:
    """Return the provider, refusing what is usually written by mistake."""
    if isinstance(value, type):
        raise ConfigError(
            f"provider must be a value, not the class {value.__name__}.", hint=f"Write sky.{value.__name__}()."
        )
    if isinstance(value, (str, bytes, int, float, dict)):
        # A dict's keys and values may be secret.
        shown = "a dict" if isinstance(value, dict) else repr(value)
        raise ConfigError(f"provider must be a provider such as sky.Local(), not {shown}.")
    if isinstance(value, (list, tuple, set, frozenset)):
        raise ConfigError(
            "provider must be one provider in a sky.Spec.",
            hint="Write one sky.Spec for each, or sky.Compute(provider=[...]).",
        )
    return value


def _accelerator(value: AcceleratorLike) -> Accelerator | None:
    """Return the accelerators, parsed."""
    return accelerator(value)


def _nodes(value: NodeSpec) -> Nodes:
    """Return the numbers of nodes, parsed."""
    return nodes(value)


def _allocation(value: AllocationLike) -> Allocation:
    """Return the way to rent, parsed."""
    return allocation(value)


def _vcpus(value: float | None) -> float | None:
    """Return the number of virtual CPUs, checked."""
    return None if value is None else positive(value, "vcpus")


def _memory_gb(value: float | str | None) -> float | None:
    """Return the main memory in GB, checked."""
    return None if value is None else gigabytes(value, "memory_gb")


def _disk_gb(value: float | str | None) -> float | None:
    """Return the disk space in GB, checked."""
    return None if value is None else gigabytes(value, "disk_gb")


def _architecture(value: str | None) -> Architecture | None:
    """Return the processor's architecture under its usual name, checked."""
    if value is None:
        return None
    given: Any = value
    spelled = _OTHER_ARCHITECTURES.get(given.lower(), given.lower()) if isinstance(given, str) else given
    return cast("Architecture", choice(spelled, "architecture", ("x86_64", "arm64")))


def _machine(value: str | None) -> str | None:
    """Return the name of the instance type, checked."""
    return None if value is None else text(value, "machine")


def _image(instance: object, attribute: object, value: object) -> None:
    """Refuse what is no `Image`."""
    if not isinstance(value, Image):
        hint = "Write sky.Image(), with brackets." if value is Image else "Write image=sky.Image(pip=[...])."
        raise ConfigError(f"image must be a sky.Image, not {value!r}.", hint=hint)


def _region(value: str | None) -> str | None:
    """Return the region, checked."""
    return None if value is None else text(value, "region")


def _max_hourly_cost(value: float | None) -> float | None:
    """Return the most that a node may cost, checked."""
    return None if value is None else positive(value, "max_hourly_cost")


def _ttl(value: float | None) -> float | None:
    """Return the dead man's switch, checked."""
    return None if value is None else seconds(value, "ttl")


def _timeout(value: float | None) -> float | None:
    """Return the longest life of an instance, checked."""
    return None if value is None else lasting(value, "timeout")


def _volumes(value: Iterable[VolumeLike] | VolumeLike) -> tuple[VolumeLike, ...]:
    """Return the volumes as a tuple, checked."""
    return volumes(value)


def _plugins(value: Iterable[Any]) -> tuple[Any, ...]:
    """Return the plugins as a tuple, refusing what is usually written by mistake."""
    if isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
        raise ConfigError(
            f"plugins must be a list of plugins, not {value!r}.", hint="Write plugins=[sky.plugins.torch()]."
        )
    plugins = tuple(value)
    for plugin in plugins:
        if isinstance(plugin, (type, FunctionType)):
            raise ConfigError(
                f"plugins must be a list of plugins; {plugin.__name__} makes one when it is called.",
                hint=f"Write {plugin.__name__}(), with brackets.",
            )
        if plugin is None or isinstance(plugin, (str, bytes, int, float, dict, list, tuple)):
            raise ConfigError(f"plugins must be a list of plugins; {plugin!r} is none.")
    return plugins


ProviderName: TypeAlias = str
"""A provider's name in events, prices and errors, such as `"aws"`."""


@suggesting
@frozen(kw_only=True)
class Spec:
    """
    Say what to rent, how much of it, and what it must hold.

    Args:
        provider: Where machines come from; None is this machine.
        accelerator: Accelerators of each node: `sky.accelerators.H100(count=8)`, `"H100"` or `"H100:8"`; None for none.
        nodes: A number, a pair of desired and max, or a `Nodes`.
        vcpus: Virtual CPUs that each node has at least.
        memory_gb: Main memory that each node has at least, in GB.
        disk_gb: Disk space that each node has at least, in GB.
        architecture: `"x86_64"` or `"arm64"`; any by default.
        machine: Name of the provider's instance type, instead of any that fits.
        allocation: How much of the pool is spot: `"spot-if-available"`, `"spot"`, `"on-demand"`, `"cheapest"`, or the
            share that is spot at least, such as 0.8.
        image: What a node's environment must hold.
        region: Where to rent, as the provider calls it.
        max_hourly_cost: The most that one node may cost, in USD per hour.
        ttl: Seconds without a word from its client after which a node ends its own instance; 0 or None never.
        timeout: The longest life of an instance, in seconds; None for no limit.
        volumes: Buckets and disks that nodes find as folders: `Volume` and `Disk` values, or one of them.
        plugins: What prepares and wraps the work, outermost first.
        trust: How results, errors and events of nodes are opened: `"code"` as any pickle, which may run what it likes;
            `"data"` or `Data` as values of known libraries and of the classes that are listed; None is `"data"` where
            the machines belong to third parties, else `"code"`.

    Raises:
        ConfigError: If a value is none of what its field takes.

    >>> spec = Spec(accelerator="H100:8", nodes=(2, 8), memory_gb=64)
    >>> spec.nodes.max, spec.accelerator.count
    (8, 8)
    """

    provider: Any = field(default=None, converter=_provider)
    accelerator: Accelerator | None = field(default=None, converter=_accelerator)
    nodes: Nodes = field(default=Nodes(1), converter=_nodes)
    vcpus: float | None = field(default=None, converter=_vcpus)
    memory_gb: float | None = field(default=None, converter=_memory_gb)
    disk_gb: float | None = field(default=None, converter=_disk_gb)
    architecture: Architecture | None = field(default=None, converter=_architecture)
    machine: str | None = field(default=None, converter=_machine)
    allocation: Allocation = field(default=Allocation(), converter=_allocation)
    image: Image = field(factory=Image, validator=_image)
    region: str | None = field(default=None, converter=_region)
    max_hourly_cost: float | None = field(default=None, converter=_max_hourly_cost)
    ttl: float | None = field(default=600.0, converter=_ttl)
    timeout: float | None = field(default=None, converter=_timeout)
    volumes: tuple[VolumeLike, ...] = field(default=(), converter=_volumes)
    plugins: tuple[Any, ...] = field(default=(), converter=_plugins)
    trust: Literal["code"] | Data | None = field(default=None, converter=trusted)

    @property
    def warnings(self) -> tuple[str, ...]:
        """
        Return what the user should know before anything is rented, a sentence each.

        >>> Spec().warnings
        ()
        >>> Spec(ttl=0).warnings
        ("ttl=0 disarms the dead man's switch: if this program dies, its instances run on and are billed.",)
        """
        if self.ttl:
            return ()
        shown = None if self.ttl is None else f"{self.ttl:g}"
        return (
            f"ttl={shown} disarms the dead man's switch: if this program dies, its instances run on and are billed.",
        )
