"""Names of places that the user wrote, checked against those that a cloud has."""

from __future__ import annotations

from collections.abc import Iterable

from skyward.errors import ConfigError
from skyward.model.fields.setting import nearest

__all__ = ["check_places"]


def check_places(wanted: Iterable[str], known: Iterable[str], *, provider: str, title: str, noun: str) -> None:
    """
    Refuse a place that a cloud does not have.

    Args:
        wanted: The names that the user wrote.
        known: All names there are.
        provider: The provider's name, for errors.
        title: The company's own name, such as `"DigitalOcean"`.
        noun: What the company calls a place, such as `"region"`.

    Raises:
        ConfigError: If there is no such place; the hint has the nearest one, or all.

    >>> check_places(["nyc3"], ["ams3", "nyc3"], provider="shed", title="Shed", noun="region")
    """
    names = sorted(known)
    for name in wanted:
        if name not in names:
            near = nearest(name, names)
            hint = f"Did you mean {near!r}?" if near else f"There are {', '.join(names)}."
            raise ConfigError(f"{title} has no {noun} {name!r}.", provider=provider, hint=hint)
