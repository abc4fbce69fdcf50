"""
What is known of one model of accelerator, whichever cloud sells it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from attrs import field, frozen

from skyward.errors import ConfigError
from skyward.model.fields.memory import written

__all__ = ["FORM_FACTORS", "Device", "FormFactor", "Manufacturer", "Spelling", "Variant", "compact"]

FormFactor = Literal["SXM", "PCIe", "NVL", "OAM"]
Manufacturer = Literal["NVIDIA", "AMD", "AWS", "Google", "Intel"]

FORM_FACTORS: dict[str, FormFactor] = {"sxm": "SXM", "pcie": "PCIe", "nvl": "NVL", "oam": "OAM"}

# How far a figure may be from the ones known, for what firmware keeps for itself.
_TOLERANCE = 0.05

_SEPARATORS = re.compile(r"[\s_/(),-]+")
_SELLERS_WORDS = re.compile(
    r"\b(?:(?:nvidia|tesla|geforce|amd|instinct|aws|amazon|google|cloud|intel|generation|tensor core|gpu)\b"
    # Vast.ai writes this one without a space.
    r"|instinct(?=mi\d))"
)


def compact(text: str) -> str:
    """
    Return a name without case, separators and the words that sellers put around it.

    >>> compact("NVIDIA GeForce RTX 4090"), compact("rtx-4090")
    ('rtx4090', 'rtx4090')
    """
    words = _SEPARATORS.sub(" ", text.lower())
    return _SELLERS_WORDS.sub("", words).replace(" ", "") or words.replace(" ", "")


@frozen
class Spelling:
    """
    Record a name that some cloud calls a device by.

    Args:
        text: The name; case, separators and sellers' words never matter.
        memory_gb: The memory that this name stands for, in GB; None where it says nothing of it.
        form_factor: The form factor that this name stands for; None where it says nothing of it.

    >>> Spelling("H100 80GB HBM3", 80, "SXM").form_factor
    'SXM'
    """

    text: str
    memory_gb: float | None = None
    form_factor: FormFactor | None = None


def _spellings(given: Iterable[str | Spelling]) -> tuple[Spelling, ...]:
    """Return spellings, of which those that say no more may be given as text."""
    return tuple(Spelling(one) if isinstance(one, str) else one for one in given)


def _profiles(table: Mapping[str, int] | Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return a table of MIG profiles as pairs, which are hashable."""
    return tuple(table.items() if isinstance(table, Mapping) else table)


@frozen(kw_only=True)
class Variant:
    """
    Describe one amount of memory that a device is made with.

    Args:
        memory_gb: Memory as the device is sold under, in GB.
        form_factors: The form factors it is made in with this memory; none where they are not distinguished.
        reported_gb: Other figures, in GB, that clouds and drivers give for the same device.
        mig: For each MIG profile, how many instances of it one device holds.

    >>> Variant(memory_gb=40, mig={"3g.20gb": 2}).instances("3g.20gb")
    2
    """

    memory_gb: float
    form_factors: tuple[FormFactor, ...] = ()
    reported_gb: tuple[float, ...] = ()
    mig: tuple[tuple[str, int], ...] = field(default=(), converter=_profiles)

    def instances(self, profile: str) -> int | None:
        """Return how many instances of a MIG profile one device holds; None if it has no such profile."""
        return dict(self.mig).get(profile)

    def __str__(self) -> str:
        forms = f" ({', '.join(self.form_factors)})" if self.form_factors else ""
        return written(self.memory_gb) + forms

    def distance(self, memory_gb: float) -> float:
        """Return how far a figure is from the nearest that is known, as a share of that."""
        return min(abs(memory_gb - known) / known for known in (self.memory_gb, *self.reported_gb))


def _variants(given: Iterable[Variant]) -> tuple[Variant, ...]:
    """Return variants as a tuple, which is hashable."""
    return tuple(given)


@frozen(kw_only=True)
class Device:
    """
    Describe one model of accelerator.

    Args:
        name: Its name in Skyward; a Python identifier, because `sky.accelerators` has an attribute of that name.
        manufacturer: Its manufacturer.
        architecture: The generation that its maker counts it to.
        variants: What it is made with; the first is the usual one, which its factory means where no memory is given.
        spellings: What clouds call it beside its name.

    >>> Device(name="T4", manufacturer="NVIDIA", architecture="Turing", variants=[Variant(memory_gb=16)]).memory_gb
    16
    """

    name: str
    manufacturer: Manufacturer
    architecture: str
    variants: tuple[Variant, ...] = field(converter=_variants)
    spellings: tuple[Spelling, ...] = field(default=(), converter=_spellings)

    @property
    def memory_gb(self) -> float:
        """Return the usual memory, in GB."""
        return self.variants[0].memory_gb

    @property
    def form_factors(self) -> tuple[FormFactor, ...]:
        """Return every form factor it is made in."""
        return tuple(dict.fromkeys(form for variant in self.variants for form in variant.form_factors))

    @property
    def mig_profiles(self) -> tuple[str, ...]:
        """Return every MIG profile that some variant of it can be cut into."""
        return tuple(dict.fromkeys(profile for variant in self.variants for profile, _ in variant.mig))

    def made(self, form_factor: FormFactor | None = None) -> tuple[Variant, ...]:
        """Return what it is made with in a form factor; everything where none is stated."""
        return tuple(one for one in self.variants if form_factor in (None, *one.form_factors))

    def variant(self, memory_gb: float) -> Variant | None:
        """Return the variant that a figure for the memory belongs to, if it is near to one."""
        nearest = min(self.variants, key=lambda variant: variant.distance(memory_gb))
        return nearest if nearest.distance(memory_gb) <= _TOLERANCE else None

    def choose(
        self, *, memory_gb: float | None = None, form_factor: FormFactor | None = None, mig: str | None = None
    ) -> Variant:
        """
        Return the first variant that meets all that is stated.

        Args:
            memory_gb: Memory, in GB.
            form_factor: The form factor.
            mig: The MIG profile that it is cut into.

        Raises:
            ConfigError: If the device is not made so.
        """
        stated = None if memory_gb is None else self.variant(memory_gb)
        if memory_gb is not None and stated is None:
            sold = ", ".join(written(variant.memory_gb) for variant in self.variants)
            raise ConfigError(f"memory={written(memory_gb)!r} is none of {self.name}.", hint=f"Accepted: {sold}.")
        fitting = self.variants if stated is None else (stated,)
        if form_factor is not None:
            fitting = tuple(variant for variant in fitting if form_factor in variant.form_factors)
        if not fitting:
            memory = "" if stated is None else f" with {written(stated.memory_gb)}"
            raise ConfigError(
                f"form_factor={form_factor!r} is none of {self.name}{memory}.",
                hint=f"It is made as {'; '.join(map(str, self.variants))}.",
            )
        return fitting[0] if mig is None else self._cut(fitting, mig)

    def _cut(self, fitting: tuple[Variant, ...], mig: str) -> Variant:
        """Return the first of some variants that can be cut into a MIG profile."""
        profiles = list(dict.fromkeys(profile for variant in fitting for profile, _ in variant.mig))
        if not profiles:
            raise ConfigError(f"mig={mig!r} can't be had: Skyward knows no MIG profile of {self.name}.")
        for variant in fitting:
            if variant.instances(mig) is not None:
                return variant
        raise ConfigError(f"mig={mig!r} is no MIG profile of {self.name}.", hint=f"Accepted: {', '.join(profiles)}.")
