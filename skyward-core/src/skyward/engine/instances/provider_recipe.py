"""How a provider is made, apart from what it has opened since: what a record of a pool has of it."""

from __future__ import annotations

from typing import Any

import attrs
from attrs import frozen

__all__ = ["ProviderRecipe"]


@frozen
class ProviderRecipe:
    """
    Hold what it takes to make a provider once more.

    Args:
        cls: Its class; None for one that is no class of attrs, and is kept as it is.
        fields: What it is made with.
        provider: The provider itself, where it is kept.
    """

    cls: Any
    fields: dict[str, Any]
    provider: Any = None

    @classmethod
    def of(cls, provider: object) -> ProviderRecipe:
        """Return how a provider is made."""
        kind: Any = type(provider)
        if not attrs.has(kind):
            return cls(None, {}, provider)
        fields = attrs.fields(kind)
        return cls(kind, {one.alias: getattr(provider, one.name) for one in fields if one.init and one.alias})

    @property
    def secrets(self) -> tuple[str, ...]:
        """List the fields that were given and are kept out of its repr: they have no place on a disk."""
        fields = () if self.cls is None else attrs.fields(self.cls)
        return tuple(
            one.alias for one in fields if one.alias in self.fields and one.repr is False and self.fields[one.alias]
        )

    def make(self) -> Any:
        """Return the provider."""
        return self.provider if self.cls is None else self.cls(**self.fields)
