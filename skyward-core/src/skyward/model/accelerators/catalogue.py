"""
The accelerators that Skyward knows, found by any of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module

from skyward.errors import ConfigError
from skyward.model.accelerators.catalogue_nvidia import NVIDIA_DEVICES
from skyward.model.accelerators.catalogue_others import OTHER_DEVICES
from skyward.model.accelerators.device import Device, Spelling, compact

__all__ = ["CATALOGUE", "Catalogue"]


class Catalogue:
    """
    Find devices by name, and take in those that plugins register.

    Args:
        devices: The devices known from the start.
        further: Called once, before a name is said to be unknown; registers what plugins bring.

    Raises:
        ConfigError: If two of the devices share a name.

    >>> CATALOGUE["NVIDIA GeForce RTX 4090"].name
    'RTX_4090'
    """

    def __init__(self, devices: Iterable[Device] = (), further: Callable[[], object] | None = None) -> None:
        self._further = further
        self._devices: dict[str, Device] = {}
        self._index: dict[str, tuple[Device, Spelling]] = {}
        for device in devices:
            self.register(device)

    def __iter__(self) -> Iterator[Device]:
        return iter(tuple(self._devices.values()))

    def __len__(self) -> int:
        return len(self._devices)

    def __getitem__(self, name: str) -> Device:
        found = self.find(name)
        if found is None:
            raise KeyError(name)
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all devices, in the order they were added."""
        return tuple(self._devices)

    def register(self, device: Device) -> None:
        """
        Add a device that a plugin brings; the same one twice changes nothing.

        Args:
            device: The device to add.

        Raises:
            ConfigError: If its name is no identifier, it has no variant, or one of its names means another device.
        """
        if not device.name.isidentifier() or not device.variants:
            raise ConfigError(f"Device {device.name!r} needs a name that is a Python identifier, and a variant.")
        if self._devices.get(device.name) == device:
            return
        known = {compact(one.text): one for one in (*device.spellings, Spelling(device.name))}
        for key, spelling in known.items():
            if key in self._index:
                raise ConfigError(
                    f"Device {device.name!r} can't be called {spelling.text!r}, because {self._index[key][0].name} is."
                )
        self._devices[device.name] = device
        self._index.update((key, (device, spelling)) for key, spelling in known.items())

    def complete(self) -> bool:
        """Take in the devices that plugins bring, the first time; return whether there are more now."""
        further, self._further = self._further, None
        before = len(self._devices)
        if further is not None:
            further()
        return len(self._devices) > before

    def spelled(self, text: str) -> tuple[Device, Spelling] | None:
        """Return the device that is spelled so, and what else that spelling says."""
        return self._index.get(compact(text))

    def find(self, name: str) -> Device | None:
        """Return the device of that name or spelling, if there is one."""
        found = self.spelled(name)
        if found is None and self.complete():
            found = self.spelled(name)
        return found[0] if found else None

    def nearest(self, name: str) -> tuple[str, ...]:
        """
        Return the names most like one that is not known, best first, three at most.

        >>> CATALOGUE.nearest("RTX 4095")[0]
        'RTX_4090'
        """
        from difflib import get_close_matches

        close = get_close_matches(compact(name), self._index, n=8, cutoff=0.5)
        return tuple(dict.fromkeys(self._index[key][0].name for key in close))[:3]


def _ask_plugins() -> None:
    """Ask installed plugins to register their devices."""
    # By name, because the doors for plugins stand above the values.
    import_module("skyward.registry").installed()


CATALOGUE = Catalogue((*NVIDIA_DEVICES, *OTHER_DEVICES), _ask_plugins)
