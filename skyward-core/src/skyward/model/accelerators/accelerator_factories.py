"""
What `sky.accelerators` is: one factory for each device of the catalogue.

    sky.accelerators.H100(count=8)
    sky.accelerators.A100(memory="40GB")
    sky.accelerators.Custom("My-GPU", memory="48GB", count=2)

The makers' names group the same factories: `sky.accelerators.NVIDIA.H100`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve, frozen

from skyward.errors import ConfigError
from skyward.model.accelerators.accelerator import Accelerator, accelerator
from skyward.model.accelerators.catalogue import CATALOGUE
from skyward.model.accelerators.device import Device, Manufacturer

__all__ = ["MAKERS", "MI", "TPU", "Accelerator", "Custom", "Factory", "Inferentia", "MakerFactories", "TPUSlice"]
__all__ += ["Trainium"]


@frozen(repr=False)
class Factory:
    """
    Make `Accelerator` values of one device: of its usual memory, where no other is given.

    Args:
        device: The device.

    >>> Factory(CATALOGUE["A100"])(memory="40GB", count=8).memory_gb
    40
    >>> str(Factory(CATALOGUE["A100"])())
    'A100-80GB'
    """

    device: Device

    def __call__(
        self,
        *,
        count: float = 1,
        memory: str | float | None = None,
        form_factor: str | None = None,
        mig: str | None = None,
    ) -> Accelerator:
        """
        Ask for accelerators of this device on each node.

        Args:
            count: How many at least; below 1 for a share of one.
            memory: Memory of one, such as `"80GB"` or a number of GB; where it is not given, the usual one of the
                device. Its name as text, such as `"A100"`, means any.
            form_factor: `"SXM"`, `"PCIe"`, `"NVL"` or `"OAM"`; any where it is not given.
            mig: MIG profile that each one is cut into, such as `"3g.40gb"`.

        Raises:
            ConfigError: If the device is not made so.
        """
        asked = Accelerator(self.device.name, count=count, memory_gb=memory, form_factor=form_factor, mig=mig)
        return (
            asked if asked.memory_gb is not None else evolve(asked, memory_gb=asked.memories_gb[0], exact_memory=True)
        )

    @property
    def __name__(self) -> str:
        return self.device.name

    def __repr__(self) -> str:
        return f"sky.accelerators.{self.device.name}"


def Custom(name: str, *, memory: str | float | None = None, count: float = 1) -> Accelerator:
    """
    Ask for accelerators that are in no catalogue.

    Args:
        name: What the cloud calls them; matched without regard to case and separators.
        memory: Memory of one at least, such as `"48GB"` or a number of GB.
        count: How many each node has at least.

    Raises:
        ConfigError: If the name is empty, or memory or count are no such amounts.

    >>> Custom("My-GPU", memory="48GB", count=2).memory_gb
    48.0
    """
    return Accelerator(name, count=count, memory_gb=memory, custom=True)


def Trainium(*, version: int = 1, count: float = 1) -> Accelerator:
    """
    Ask for AWS Trainium of some generation.

    Args:
        version: The generation.
        count: How many each node has at least.

    Raises:
        ConfigError: If there is no such generation.

    >>> Trainium(version=2).name
    'Trainium2'
    """
    return _generation("Trainium", version, count=count)


def Inferentia(*, version: int = 1, count: float = 1) -> Accelerator:
    """
    Ask for AWS Inferentia of some generation.

    Args:
        version: The generation.
        count: How many each node has at least.

    Raises:
        ConfigError: If there is no such generation.

    >>> Inferentia(version=2).name
    'Inferentia2'
    """
    return _generation("Inferentia", version, count=count)


def TPU(*, version: str = "v5e", count: float = 1) -> Accelerator:
    """
    Ask for Google TPU chips of some generation.

    Args:
        version: The generation, such as `"v5p"`.
        count: How many chips each node has at least.

    Raises:
        ConfigError: If there is no such generation.

    >>> TPU(version="v5p").name
    'TPUv5p'
    """
    generation = str(version).lower().removeprefix("tpu")
    return _generation("TPU", generation if generation.startswith("v") else f"v{generation}", count=count)


def TPUSlice(name: str) -> Accelerator:
    """
    Ask for a slice of Google TPUs.

    Args:
        name: The slice as Google writes it, such as `"v5p-8"`.

    Raises:
        ConfigError: If there is no such slice.

    >>> TPUSlice("v5p-8").count
    4
    """
    asked = accelerator(name, "name")
    if asked.topology is None:
        raise ConfigError(f"name={name!r} is no slice of TPUs.", hint='Write for example "v5p-8".')
    return asked


def MI(model: str | int, *, count: float = 1) -> Accelerator:
    """
    Ask for an AMD Instinct of some model.

    Args:
        model: The model, such as `"300X"`.
        count: How many each node has at least.

    Raises:
        ConfigError: If there is no such model.

    >>> MI("300X").name
    'MI300X'
    """
    return _generation("MI", str(model).upper().removeprefix("MI"), count=count)


def _generation(family: str, version: object, *, count: float) -> Accelerator:
    """Return accelerators of one member of a family, or raise with all members."""
    name = f"{family}{version}"
    members = [device.name for device in CATALOGUE if device.name.startswith(family)]
    found = CATALOGUE.find(name)
    if found is None or found.name not in members:
        raise ConfigError(f"{name!r} is no accelerator that Skyward knows.", hint=f"Known: {', '.join(members)}.")
    return Accelerator(found.name, count=count)


@frozen(repr=False)
class MakerFactories:
    """
    Group the factories of one maker's devices, as attributes.

    Args:
        name: The maker's name.

    >>> MakerFactories("NVIDIA").H100(count=8).count
    8
    """

    name: Manufacturer

    def __getattr__(self, attribute: str) -> Callable[..., Accelerator]:
        family = _FAMILIES.get(self.name, {}).get(attribute)
        if family is not None:
            return family
        device = _named(attribute)
        if device is None or device.manufacturer != self.name:
            raise AttributeError(_missing(f"sky.accelerators.{self.name}", attribute))
        return Factory(device)

    def __dir__(self) -> list[str]:
        return sorted(
            {*(one.name for one in CATALOGUE if one.manufacturer == self.name), *_FAMILIES.get(self.name, {})}
        )

    def __repr__(self) -> str:
        return f"sky.accelerators.{self.name}"


_FAMILIES: Mapping[str, Mapping[str, Callable[..., Accelerator]]] = {
    "AWS": {"Trainium": Trainium, "Inferentia": Inferentia},
    "Google": {"TPU": TPU, "TPUSlice": TPUSlice},
    "AMD": {"MI": MI},
}

MAKERS: Mapping[str, MakerFactories] = {
    "NVIDIA": MakerFactories("NVIDIA"),
    "AMD": MakerFactories("AMD"),
    "AWS": MakerFactories("AWS"),
    "Google": MakerFactories("Google"),
    "Intel": MakerFactories("Intel"),
}

for _maker, _factories in MAKERS.items():
    # `sky.Accelerator` is looked up in this module, so that `Accelerator.NVIDIA.H100` is there.
    setattr(Accelerator, _maker, _factories)


def __getattr__(name: str) -> Any:
    if name in MAKERS:
        return MAKERS[name]
    device = _named(name)
    if device is None:
        raise AttributeError(_missing("sky.accelerators", name))
    return Factory(device)


def __dir__() -> list[str]:
    CATALOGUE.complete()
    families = [name for members in _FAMILIES.values() for name in members]
    return sorted({*CATALOGUE.names, *MAKERS, *families, "Custom"})


def _named(name: str) -> Device | None:
    """Return the device of exactly that name, if there is one."""
    found = CATALOGUE.find(name)
    return found if found is not None and found.name == name else None


def _missing(where: str, name: str) -> str:
    """Return the message for an attribute that is in no catalogue."""
    near = () if name.startswith("_") else CATALOGUE.nearest(name)
    return f"{where} has no {name!r}." + (f" Did you mean {' or '.join(near)}?" if near else "")
