"""What a pool said while a test listened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def of(heard: Sequence[Any], kind: type[Any]) -> list[Any]:
    """List the events of a kind; more may come meanwhile."""
    return [event for event in list(heard) if isinstance(event, kind)]
