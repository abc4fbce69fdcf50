"""Pools on scripted clouds: what is made of them, and what holds for each at its end."""

from __future__ import annotations

from typing import Any

import skyward as sky


class Heard(list[Any]):
    """Collect the events of a pool; complete once the pool was left."""

    def of(self, kind: type[Any]) -> list[Any]:
        """List those of one kind."""
        return [event for event in self if isinstance(event, kind)]

    @property
    def kinds(self) -> list[str]:
        """List their kinds by name."""
        return [type(event).__name__ for event in self]


def compute(*clouds: Any, **settings: Any) -> tuple[sky.Compute, Heard]:
    """Make a pool of scripted clouds that tries them in order, and what hears its events."""
    heard = Heard()
    given: dict[str, Any] = {
        "provider": list(clouds) if len(clouds) > 1 else clouds[0],
        "selection": "first",
        "console": False,
        "logging": False,
        "on_event": heard.append,
        **settings,
    }
    return sky.Compute(**given), heard
