"""
The accelerators that each node of a pool has, as a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Protocol, TypeAlias, overload

from attrs import frozen

from skyward.errors import ConfigError
from skyward.model.accelerators.accelerator_fields import (
    checked_count,
    checked_form_factor,
    checked_profile,
    custom_name,
    known_device,
    unknown_device,
)
from skyward.model.accelerators.catalogue import CATALOGUE
from skyward.model.accelerators.device import Device, FormFactor, compact
from skyward.model.accelerators.nvidia_names import NVIDIA
from skyward.model.accelerators.spelling import counted, normalise, read
from skyward.model.fields.memory import gigabytes, written

__all__ = [
    "NVIDIA",
    "Accelerator",
    "AcceleratorLike",
    "AcceleratorSpec",
    "accelerator",
    "is_nvidia",
    "is_trainium",
    "mig_profiles",
    "normalise",
    "recognise",
]


class OneMaker(Protocol):
    """The factories of one maker's devices, as attributes."""

    def __getattr__(self, attribute: str, /) -> Callable[..., Accelerator]: ...


PARTITION_KEYWORD = "mig"
"""Keyword of an accelerator that asks for slices of it; the plugin that cuts them has the same name."""


@frozen(init=False)
class Accelerator:
    """
    Say which accelerators each node has, and how many.

    `sky.accelerators.H100(count=8)` is the usual way to write one, and `"H100:8"` the short one.

    Args:
        name: Name in the catalogue, in any spelling.
        count: How many each node has at least; below 1 for a share of one.
        memory_gb: Memory of one, in GB or as text; where it is not given, the usual one of the device or more.
        form_factor: `"SXM"`, `"PCIe"`, `"NVL"` or `"OAM"`; any where it is not given.
        mig: MIG profile that each one is cut into, such as `"3g.40gb"`.
        topology: The slice of a TPU, as Google writes it, such as `"v5p-8"`.
        exact_memory: Whether only this memory will do; by default, where the memory or a profile is given.
        custom: Whether the name may be one that is in no catalogue.

    Raises:
        ConfigError: If the name is not known, or the device is not made so.

    >>> str(Accelerator("A100", memory_gb="40GB", count=2))
    'A100-40GB:2'
    >>> Accelerator("a100", count=8).memory_gb is None, Accelerator("t4").memory_gb
    (True, 16)
    """

    name: str
    count: float
    memory_gb: float | None
    form_factor: FormFactor | None
    mig: str | None
    topology: str | None
    exact_memory: bool
    custom: bool

    # Older names of the factories, which are set beside them: they make accelerators.
    NVIDIA: ClassVar[OneMaker]
    AMD: ClassVar[OneMaker]
    AWS: ClassVar[OneMaker]
    Google: ClassVar[OneMaker]
    Intel: ClassVar[OneMaker]

    def __init__(
        self,
        name: str,
        *,
        count: float = 1,
        memory_gb: float | str | None = None,
        form_factor: str | None = None,
        mig: str | None = None,
        topology: str | None = None,
        exact_memory: bool | None = None,
        custom: bool = False,
    ) -> None:
        device = None if custom else known_device(name, "name")
        memory = None if memory_gb is None else gigabytes(memory_gb, "memory")
        form = None if form_factor is None else checked_form_factor(form_factor)
        profile = None if mig is None else checked_profile(mig)
        made = None if device is None else device.choose(memory_gb=memory, form_factor=form, mig=profile)
        if profile is not None and made is None:
            raise ConfigError(f"mig={mig!r} needs a device of the catalogue; {name!r} is in none.")
        settled = memory is not None or profile is not None or device is None or len(device.made(form)) == 1
        self.__attrs_init__(
            name=device.name if device is not None else custom_name(name),
            count=checked_count(count),
            memory_gb=memory if made is None else made.memory_gb if settled else None,
            form_factor=form,
            mig=profile,
            topology=topology,
            exact_memory=(memory is not None or profile is not None) if exact_memory is None else exact_memory,
            custom=custom,
        )

    def __str__(self) -> str:
        if self.topology is not None:
            return self.topology
        known = [self.name]
        if self.exact_memory and self.memory_gb is not None:
            known.append(written(self.memory_gb))
        known += [part for part in (self.form_factor, self.mig) if part is not None]
        return "-".join(known) + (f":{self.count:g}" if self.count != 1 else "")

    @property
    def device(self) -> Device | None:
        """Return what the catalogue knows of it, if anything."""
        return CATALOGUE.find(self.name)

    @property
    def memory(self) -> str | None:
        """Return the memory of one as text, such as `"80GB"`."""
        return None if self.memory_gb is None else written(self.memory_gb)

    @property
    def known_memory_gb(self) -> float | None:
        """
        Return the memory of one, in GB, where it is stated or can be no other; None where it is only the usual one.

        >>> recognise("H100 NVL").known_memory_gb, recognise("H100").known_memory_gb
        (94, None)
        """
        if self.exact_memory or self.device is None:
            return self.memory_gb
        made = self.device.made(self.form_factor)
        return made[0].memory_gb if len(made) == 1 else None

    @property
    def memories_gb(self) -> tuple[float, ...]:
        """
        Return the amounts of memory, in GB, that one may have, as devices are sold under; empty where none is known.

        >>> Accelerator("A100").memories_gb, Accelerator("A100", memory_gb=40).memories_gb
        ((80, 40), (40,))
        """
        if self.memory_gb is not None or self.device is None or self.custom:
            return () if self.memory_gb is None else (self.memory_gb,)
        return tuple(made.memory_gb for made in self.device.made(self.form_factor))

    @property
    def least_memory_gb(self) -> float | None:
        """Return the memory, in GB, from which on any will do; None where only one of `memories_gb` will."""
        if not self.memories_gb or (self.exact_memory and not self.custom):
            return None
        # Firmware keeps some of it, so that a figure may stay a little below the one a device is sold under.
        return self.memories_gb[0] * 0.95

    @property
    def manufacturer(self) -> str | None:
        """Return its manufacturer; None where that is not known."""
        return self.device.manufacturer if self.device is not None else None

    @property
    def architecture(self) -> str | None:
        """Return the generation that its maker counts it to; None where that is not known."""
        return self.device.architecture if self.device is not None else None

    @property
    def partitions(self) -> int:
        """Return how many workers one of them is cut into; 1 without MIG."""
        if self.mig is None or self.device is None or self.memory_gb is None:
            return 1
        made = self.device.variant(self.memory_gb)
        return (made.instances(self.mig) if made is not None else None) or 1

    @property
    def workers(self) -> int:
        """Return how many workers a node has room for, one for each accelerator or partition of one."""
        return max(1, int(self.count)) * self.partitions

    def accepts(self, offered: Accelerator) -> bool:
        """
        Return whether a node with the offered accelerators has what is asked for.

        What an offer leaves out, its memory or form factor, is taken to be right.

        Args:
            offered: What a node would have; see `recognise` for what clouds call it.

        >>> offered = recognise("NVIDIA A100-SXM4-40GB", count=8)
        >>> Accelerator("A100").accepts(offered), Accelerator("A100", memory_gb=80).accepts(offered)
        (True, False)
        """
        return (
            compact(offered.name) == compact(self.name)
            and offered.count >= self.count
            and (None in (self.form_factor, offered.form_factor) or self.form_factor == offered.form_factor)
            and self._accepts_memory(offered)
        )

    def _accepts_memory(self, offered: Accelerator) -> bool:
        """Return whether the memory of one offered accelerator will do."""
        if not self.memories_gb or offered.memory_gb is None or not offered.exact_memory:
            return True
        least = self.least_memory_gb
        return offered.memory_gb in self.memories_gb or (least is not None and offered.memory_gb >= least)


AcceleratorSpec = Accelerator
"""Older name of `Accelerator`."""

AcceleratorLike: TypeAlias = "Accelerator | str | None"


@overload
def accelerator(value: None, parameter: str = ...) -> None: ...
@overload
def accelerator(value: Accelerator | str, parameter: str = ...) -> Accelerator: ...
@overload
def accelerator(value: object, parameter: str = ...) -> Accelerator | None: ...
def accelerator(value: object, parameter: str = "accelerator") -> Accelerator | None:
    """
    Return the accelerators that a user writes; None stays None.

    Args:
        value: An `Accelerator`, or text such as `"H100"`, `"H100:8"`, `"A100-40GB"`, `"H100-SXM:4"` or `"v5p-8"`.
        parameter: Name of the parameter it was given for, for the error.

    Raises:
        ConfigError: If the name is not known, or the device is not made so.

    >>> accelerator("H100:8") == Accelerator("H100", count=8)
    True
    """
    if value is None or isinstance(value, Accelerator):
        return value
    if not isinstance(value, str):
        hint = "Call it, as in sky.accelerators.H100()." if callable(value) else 'Write for example "H100:8".'
        raise ConfigError(f"{parameter} must be an accelerator or its name, not {value!r}.", hint=hint)
    name, count = counted(value, parameter)
    seen = read(name)
    if seen.device is None:
        raise unknown_device(name, parameter)
    if seen.chips is not None and count != 1:
        raise ConfigError(f"{parameter}={value!r} asks for several slices; a node is part of one.")
    return Accelerator(
        seen.device.name,
        count=seen.chips or seen.count or count,
        memory_gb=seen.memory_gb,
        form_factor=seen.form_factor,
        mig=seen.mig,
        topology=seen.topology,
    )


def recognise(name: str, *, count: float = 1, memory_gb: float | None = None) -> Accelerator:
    """
    Return the accelerators that a cloud says a machine has, whether they are known or not.

    Args:
        name: What the cloud calls them.
        count: How many the machine has.
        memory_gb: What the cloud says of one's memory, in GB.

    >>> recognise("NVIDIA H100 80GB HBM3", count=8).form_factor
    'SXM'
    >>> recognise("8V100.48V").count
    8
    >>> recognise("Frobnicator 9000", memory_gb=64).custom
    True
    >>> recognise("NVIDIA A100-SXM4-40GB MIG 1g.5gb").name
    'NVIDIA A100-SXM4-40GB MIG 1g.5gb'
    """
    seen = read(name)
    if seen.device is None or seen.mig is not None:
        # A slice is none of the device that it was cut from.
        return Accelerator(name, count=count, memory_gb=memory_gb, custom=True)
    stated = memory_gb if memory_gb is not None else seen.memory_gb
    made = None if stated is None else seen.device.variant(stated)
    if stated is not None and made is None:
        return Accelerator(seen.device.name, count=count, memory_gb=stated, custom=True)
    form = seen.form_factor
    if form is not None and made is None:
        # A form factor can settle the memory, as with the H100 NVL.
        made = next((variant for variant in seen.device.variants if form in variant.form_factors), None)
    if made is None or form not in made.form_factors:
        form = None
    memory = None if made is None else made.memory_gb
    return Accelerator(
        seen.device.name,
        count=seen.chips or seen.count or count,
        memory_gb=memory,
        form_factor=form,
        topology=seen.topology,
        exact_memory=stated is not None,
    )


def is_nvidia(accelerator: Accelerator | str) -> bool:
    """
    Return whether an accelerator is one of NVIDIA's.

    Args:
        accelerator: The accelerator, or its name in any spelling.

    >>> is_nvidia("H100"), is_nvidia("MI300X")
    (True, False)
    """
    return _maker(accelerator) == "NVIDIA"


def is_trainium(accelerator: Accelerator | str) -> bool:
    """
    Return whether an accelerator is one of AWS's Trainium.

    Args:
        accelerator: The accelerator, or its name in any spelling.

    >>> is_trainium("Trainium2"), is_trainium("H100")
    (True, False)
    """
    name = accelerator.name if isinstance(accelerator, Accelerator) else normalise(accelerator.partition(":")[0])
    return name.startswith("Trainium") and _maker(accelerator) == "AWS"


def mig_profiles(name: str, memory: float | str | None = None) -> dict[str, int]:
    """
    Return the MIG profiles of a device, each with how many instances one device holds.

    Args:
        name: Name of the device, in any spelling.
        memory: Its memory, in GB or as text; its usual one where it is not given.

    Raises:
        ConfigError: If the name is not known, or the device is not made with that memory.

    >>> mig_profiles("A100", "40GB")["3g.20gb"]
    2
    """
    seen = read(name)
    device = seen.device or known_device(name, "name")
    stated = seen.memory_gb if memory is None else gigabytes(memory, "memory")
    return dict(device.choose(memory_gb=stated, form_factor=seen.form_factor).mig)


def _maker(given: Accelerator | str) -> str | None:
    """Return the manufacturer of an accelerator, as far as its name shows."""
    if isinstance(given, Accelerator):
        return given.manufacturer
    device = read(given).device or read(given.partition(":")[0]).device
    return device.manufacturer if device is not None else None
