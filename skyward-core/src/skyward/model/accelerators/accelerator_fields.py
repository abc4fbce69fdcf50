"""What a user may write about an accelerator, field by field, checked."""

from __future__ import annotations

import math

from skyward.errors import ConfigError
from skyward.model.accelerators.catalogue import CATALOGUE
from skyward.model.accelerators.device import FORM_FACTORS, Device, FormFactor
from skyward.model.accelerators.spelling import read


def known_device(name: object, parameter: str) -> Device:
    """Return the device of that name, or raise with the names most like it."""
    if not isinstance(name, str):
        raise ConfigError(f"{parameter} must be the name of an accelerator, not {name!r}.")
    found = CATALOGUE.find(name)
    if found is None:
        raise unknown_device(name, parameter)
    return found


def unknown_device(name: str, parameter: str) -> ConfigError:
    """Return the error for a name in no catalogue."""
    near = CATALOGUE.nearest(read(name).text)
    hint = f"Did you mean {' or '.join(near)}?" if near else "dir(sky.accelerators) lists the known ones."
    return ConfigError(
        f"{parameter}={name!r} is no accelerator that Skyward knows.",
        hint=f"{hint} For one that is not listed, write sky.accelerators.Custom({name!r}, memory=...).",
    )


def custom_name(name: object) -> str:
    """Return the name of an accelerator that is in no catalogue."""
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"name must be what the cloud calls the accelerator, not {name!r}.")
    return name.strip()


def checked_count(count: object) -> float:
    """Return a count, as an int where it is whole."""
    accepted = "Write a whole number, or a share of one such as 0.5."
    if isinstance(count, bool) or not isinstance(count, (int, float)):
        raise ConfigError(f"count must be a number of accelerators, not {count!r}.", hint=accepted)
    if not math.isfinite(count) or count <= 0 or (count > 1 and count != int(count)):
        raise ConfigError(f"count={count!r} accelerators can't be had.", hint=accepted)
    return int(count) if count == int(count) else count


def checked_form_factor(given: object) -> FormFactor:
    """Return the one name of a form factor, of which `SXM5` and `SXM` are the same."""
    form = FORM_FACTORS.get(given.lower().rstrip("0123456789")) if isinstance(given, str) else None
    if form is None:
        raise ConfigError(
            f"form_factor={given!r} is none that Skyward knows.", hint=f"Accepted: {', '.join(FORM_FACTORS.values())}."
        )
    return form


def checked_profile(given: object) -> str:
    """Return a MIG profile in the one way to write it."""
    if not isinstance(given, str):
        raise ConfigError(f"mig={given!r} is no MIG profile.", hint='Write for example "3g.40gb".')
    return given.strip().lower()
