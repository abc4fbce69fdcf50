"""The keys of a cloud's object store, which are others than those of its API."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from skyward.errors import CredentialsError
from skyward.hookspecs import BucketStorage

__all__ = ["with_keys"]


def with_keys(
    storage: BucketStorage,
    names: tuple[str, str],
    environment: Mapping[str, str],
    said: str,
    *,
    provider: str,
    hint: str,
) -> BucketStorage:
    """
    Return an object store with the keys that stand in two variables.

    Args:
        storage: The store, which is the provider's own.
        names: The variables of the key's id and of the secret.
        environment: All variables.
        said: Which bucket needs them, as the first half of the error.
        provider: The provider's name.
        hint: How one gets them.

    Raises:
        CredentialsError: If one is missing.

    >>> storage = BucketStorage(endpoint="https://shed.example", region="here")
    >>> keys = {"ID": "me", "SECRET": "hidden"}
    >>> with_keys(storage, ("ID", "SECRET"), keys, "Buckets have keys", provider="shed", hint="Ask.").access_key
    'me'
    """
    if missing := [name for name in names if not environment.get(name)]:
        verb = "is" if len(missing) == 1 else "are"
        raise CredentialsError(f"{said}: {' and '.join(missing)} {verb} not set.", provider=provider, hint=hint)
    return evolve(storage, access_key=environment[names[0]], secret_key=environment[names[1]])
