"""Names that the user wrote, checked against those that a cloud has."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from skyward.errors import ConfigError
from skyward.model.fields.setting import nearest

__all__ = ["check_places", "unknown_name"]

FEW = 40
"""As many names as an error lists, where none is near the wrong one."""


def unknown_name(said: str, wanted: str, known: Collection[str], *, provider: str) -> ConfigError:
    """
    Return the error of a name that a cloud does not have, which offers the nearest one, or all where they are few.

    Args:
        said: What is wrong, as a sentence without its full stop.
        wanted: The name that the user wrote.
        known: All names there are.
        provider: The provider's name.

    >>> unknown_name("Shed has no region 'nyc4'", "nyc4", ["ams3", "nyc3"], provider="shed").hint
    "Did you mean 'nyc3'?"
    """
    near = nearest(wanted, known)
    there = f"There are {', '.join(sorted(known)) or 'none'}." if len(known) <= FEW else None
    return ConfigError(f"{said}.", provider=provider, hint=f"Did you mean {near!r}?" if near else there)


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
    names = frozenset(known)
    for name in wanted:
        if name not in names:
            raise unknown_name(f"{title} has no {noun} {name!r}", name, names, provider=provider)
