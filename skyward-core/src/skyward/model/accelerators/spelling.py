"""
Reading what users and clouds write for an accelerator.
"""

from __future__ import annotations

import re
from typing import cast

from attrs import frozen

from skyward.errors import ConfigError
from skyward.model.accelerators.catalogue import CATALOGUE
from skyward.model.accelerators.device import FORM_FACTORS, Device, FormFactor

__all__ = ["Reading", "counted", "normalise", "read", "slice_chips"]

_COUNT_BEFORE = re.compile(r"\s*(\d+)\s*x\s*(?=[a-z])", re.IGNORECASE)
_PROFILE = re.compile(r"(?:\bmig[\s-]*)?(?<![\w.])(\d+g\.\d+gb(?:[+-](?:me\.all|me|gfx))?)(?!\w)", re.IGNORECASE)
_MEMORY = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:gib|gb|g)(?!\w)", re.IGNORECASE)
_FORM = re.compile(r"(?<![a-z])(sxm|pcie|nvl|oam)\d*(?![a-z])", re.IGNORECASE)
_MEMORY_KIND = re.compile(r"\b(hbm\d\w?|gddr\d\w?)\b", re.IGNORECASE)
# Names of machines that say how many accelerators they have: Verda's `8V100.48V` and `8H100.80S.176V`, in which the
# memory is that of one, DigitalOcean's `gpu-h100x8-640gb`, in which it is that of all together.
_MACHINES = (
    re.compile(r"(?P<count>\d+)(?P<name>[A-Z]\w*)(?:\.(?P<each>\d+)S)?\.\d+V"),
    re.compile(r"gpu-(?P<name>[a-z\d]\w*?)x(?P<count>\d+)-(?P<total>\d+)gb(?:-[a-z\d]+)*"),
)
_SLICE = re.compile(r"(?:tpu[\s_-]*)?(v\d+\w*)-(\d+)", re.IGNORECASE)

# Google names slices of these generations after their cores, of which a chip has two; later ones after chips.
_NAMED_BY_CORES = frozenset({"TPUv2", "TPUv3", "TPUv4", "TPUv5p"})


@frozen(kw_only=True)
class Reading:
    """
    Hold what a name says of an accelerator.

    Args:
        text: The name as it was written, without a count.
        device: The device it means; None if it is in no catalogue.
        memory_gb: The memory it states, in GB.
        form_factor: The form factor it states.
        mig: The MIG profile it states.
        topology: The slice it states, as Google writes it.
        chips: How many chips that slice has.
        count: How many a machine has that is called so.
    """

    text: str
    device: Device | None = None
    memory_gb: float | None = None
    form_factor: FormFactor | None = None
    mig: str | None = None
    topology: str | None = None
    chips: int | None = None
    count: int | None = None


def read(text: str) -> Reading:
    """
    Return what a name says, whether it is known or not; a count before it is left out.

    Args:
        text: A name as a user or a cloud writes it.

    >>> seen = read("NVIDIA A100-SXM4-80GB")
    >>> seen.device.name, seen.memory_gb, seen.form_factor
    ('A100', 80.0, 'SXM')
    """
    text = text.strip()
    seen = _read(text)
    return _read(text) if seen.device is None and CATALOGUE.complete() else seen


def _read(text: str) -> Reading:
    """Return what a name means by the catalogue as it is now."""
    whole = CATALOGUE.spelled(text)
    if whole is not None:
        device, spelling = whole
        return Reading(text=text, device=device, memory_gb=spelling.memory_gb, form_factor=spelling.form_factor)
    sliced = _SLICE.fullmatch(text)
    if sliced is not None and (sold := CATALOGUE.find(sliced[1])) is not None:
        chips = slice_chips(sold.name, int(sliced[2]))
        topology = f"{sliced[1]}-{sliced[2]}".lower()
        return Reading(text=text, device=sold, topology=topology, chips=chips)
    for pattern in _MACHINES:
        machine = pattern.fullmatch(text)
        # In `gpu-mi300x8-1536gb` one x is both the end of the name and the sign before the count.
        found = machine and (CATALOGUE.spelled(machine["name"]) or CATALOGUE.spelled(f"{machine['name']}x"))
        if machine is not None and found is not None:
            return _machine(text, found[0], machine.groupdict())
    counted_before = _COUNT_BEFORE.match(text)
    return _parts(text if counted_before is None else text[counted_before.end() :])


def _machine(text: str, device: Device, said: dict[str, str | None]) -> Reading:
    """Return what the name of a machine says of its accelerators."""
    count, each, total = (int(said.get(part) or 0) for part in ("count", "each", "total"))
    if not count:
        return Reading(text=text)
    memory = each or total / count or None
    return Reading(text=text, device=device, count=count, memory_gb=memory)


def _parts(text: str) -> Reading:
    """Return what a name says once profile, memory and form factor are taken out of it."""
    rest = text.replace("_", " ")
    profile, rest = _take(_PROFILE, rest)
    memory, rest = _take(_MEMORY, rest)
    form, rest = _take(_FORM, rest)
    _, rest = _take(_MEMORY_KIND, rest)
    found = CATALOGUE.spelled(rest)
    if found is None:
        return Reading(text=text)
    device, spelling = found
    return Reading(
        text=text,
        device=device,
        memory_gb=float(memory) if memory else spelling.memory_gb,
        form_factor=FORM_FACTORS[form.lower()] if form else spelling.form_factor,
        mig=profile.lower() if profile else None,
    )


def _take(pattern: re.Pattern[str], text: str) -> tuple[str | None, str]:
    """Return what the pattern's group matches, and the text without the match."""
    found = pattern.search(text)
    if found is None:
        return None, text
    return cast("str", found[1]), f"{text[: found.start()]} {text[found.end() :]}"


def counted(text: str, parameter: str) -> tuple[str, float]:
    """
    Split what a user writes into a name and a count.

    Args:
        text: A name, alone or as in `"H100:8"` or `"8x H100"`.
        parameter: Name of the parameter it was given for, for the error.

    Raises:
        ConfigError: If what is in the count's place is no number.

    >>> counted("H100:8", "accelerator"), counted("8x H100", "accelerator"), counted("T4", "accelerator")
    (('H100', 8.0), ('H100', 8.0), ('T4', 1.0))
    """
    before = _COUNT_BEFORE.match(text)
    if before is not None:
        return text[before.end() :].strip(), float(before[1])
    name, colon, count = text.partition(":")
    if not colon:
        return text.strip(), 1.0
    try:
        return name.strip(), float(count)
    except ValueError as error:
        raise ConfigError(
            f"{parameter}={text!r} has {count!r} where a count belongs.", hint='Write for example "H100:8".'
        ) from error


def slice_chips(name: str, number: int) -> int:
    """
    Return how many chips a TPU slice has.

    Args:
        name: Name of the device in the catalogue.
        number: The number in the slice's name, which counts cores in some generations and chips in others.

    Raises:
        ConfigError: If no slice has that number.

    >>> slice_chips("TPUv5p", 8), slice_chips("TPUv6e", 8)
    (4, 8)
    """
    by_cores = name in _NAMED_BY_CORES
    if number < 1 or (by_cores and number % 2):
        raise ConfigError(f"No slice of {name} has {number} {'cores; a chip has two' if by_cores else 'chips'}.")
    return number // 2 if by_cores else number


def normalise(text: str) -> str:
    """
    Return Skyward's name for what a user or a cloud writes; a name that is not known stays as it is.

    Args:
        text: The name, in any of its spellings; memory, form factor and count are left out.

    >>> normalise("NVIDIA A100-SXM4-80GB"), normalise("nvidia-tesla-t4"), normalise("My-GPU")
    ('A100', 'T4', 'My-GPU')
    """
    seen = read(text)
    return seen.device.name if seen.device is not None else text.strip()
