"""Fingerprints of SSH host keys, as OpenSSH and clouds print them."""

from __future__ import annotations

import re

from skyward.errors import ConfigError

__all__ = ["sha256_fingerprint"]

_SHA256 = re.compile(r"(?:SHA256:)?([A-Za-z0-9+/]{43})=?")


def sha256_fingerprint(value: str, name: str) -> str:
    """
    Return the SHA256 fingerprint of a host key in the one spelling of OpenSSH.

    Args:
        value: The fingerprint, with or without the prefix `SHA256:` and the padding at its end.
        name: The field it is for, for the error.

    Raises:
        ConfigError: If it is no SHA256 fingerprint, such as an MD5 one.

    >>> sha256_fingerprint("47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "fingerprints")
    'SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU'
    """
    found = _SHA256.fullmatch(value.strip())
    if found is None:
        raise ConfigError(
            f"{name} must be SHA256 fingerprints such as 'SHA256:47DEQpj8HBSa…', not {value!r}.",
            hint="ssh-keygen -l -f KEY.pub prints one.",
        )
    return f"SHA256:{found[1]}"
