"""
Which slices an accelerator can be cut into, and how ranks are shared out among GPUs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from skyward import Accelerator, ConfigError
from skyward.model.accelerators.catalogue import CATALOGUE

__all__ = ["checked", "shares", "slices"]

_PROFILE = re.compile(r"(\d+)g\.(\d+)gb([+-][a-z.]+)*")


def checked(value: object) -> str:
    """
    Return a profile in the one way to write it, if any device has it.

    Args:
        value: What was given.

    Raises:
        ConfigError: If it is no profile, or none of a device that is known.

    >>> checked("MIG 3g.40GB")
    '3g.40gb'
    """
    if not isinstance(value, str):
        raise ConfigError(
            f"profile must be the name of a MIG profile, not {value!r}.", hint='Write for example "3g.40gb".'
        )
    name = value.strip().lower().removeprefix("mig").strip()
    known = dict.fromkeys(profile for device in CATALOGUE for profile in device.mig_profiles)
    if name not in known:
        what = (
            "is no MIG profile of any accelerator that is known here"
            if _PROFILE.fullmatch(name)
            else "is no MIG profile"
        )
        raise ConfigError(f"profile={value!r} {what}.", hint=_nearest(name, known))
    return name


def slices(accelerator: Accelerator, profile: str) -> int:
    """
    Count the slices of one profile that each of some GPUs can be cut into.

    Args:
        accelerator: The GPUs.
        profile: The profile.

    Raises:
        ConfigError: If it has no such profile.

    >>> from skyward.model.accelerators.accelerator import recognise
    >>> slices(recognise("NVIDIA A100-SXM4-80GB"), "3g.40gb")
    2
    """
    device = accelerator.device
    if device is None:
        raise ConfigError(f"Which MIG profiles {accelerator.name} has is not known here.")
    if not device.mig_profiles:
        able = [each.name for each in CATALOGUE if each.mig_profiles]
        raise ConfigError(
            f"{device.name} cannot be cut into slices: it has no MIG.", hint=f"Those can: {', '.join(able)}."
        )
    memory = accelerator.known_memory_gb
    variant = None if memory is None else device.variant(memory)
    made = device.variants if variant is None else (variant,)
    counts = [count for each in made if (count := each.instances(profile)) is not None]
    if not counts:
        known = {name: count for each in made for name, count in each.mig}
        raise ConfigError(
            f"profile={profile!r} is no MIG profile of {accelerator}.",
            hint=f"{_nearest(profile, known)} It has {_listed(known)}.",
        )
    return min(counts)


def shares(ranks: int, gpus: int) -> tuple[int, ...]:
    """
    Share ranks out among GPUs, as evenly as can be.

    Args:
        ranks: How many ranks there are.
        gpus: How many GPUs.

    >>> shares(5, 2)
    (3, 2)
    """
    return tuple(ranks // gpus + (index < ranks % gpus) for index in range(gpus))


def _nearest(name: str, known: Iterable[str]) -> str:
    """Name the profiles that are most like one: with as many processors and about the memory, or written alike."""
    if asked := _PROFILE.fullmatch(name):
        alike = [one for each in known if (one := _PROFILE.fullmatch(each)) and one[1] == asked[1]]
        near = [one[0] for one in sorted(alike, key=lambda one: abs(int(one[2]) - int(asked[2])))[:3]]
    else:
        near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else 'A profile is written as "3g.40gb".'


def _listed(known: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in known.items())
