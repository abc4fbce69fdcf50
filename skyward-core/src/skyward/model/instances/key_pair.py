"""
A key pair for SSH that exists only in memory.
"""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["KeyPair"]


class KeyPair:
    """
    Hold a fresh ed25519 key pair, made when it is first asked for.

    It is gone with the pool, and its repr hides it.

    >>> pair = KeyPair()
    >>> pair.public.split()[0], pair
    ('ssh-ed25519', KeyPair())
    """

    @classmethod
    def of(cls, private: str) -> KeyPair:
        """
        Return the pair of a private key.

        Args:
            private: Its text, in the format of OpenSSH.

        >>> pair = KeyPair()
        >>> KeyPair.of(pair.private).public == pair.public
        True
        """
        import asyncssh

        pair = cls()
        pair.__dict__["_key"] = asyncssh.import_private_key(private)
        return pair

    @functools.cached_property
    def _key(self) -> Any:
        # Late, because loading what makes keys takes longer than everything else at the start.
        import asyncssh

        return asyncssh.generate_private_key("ssh-ed25519")

    @property
    def public(self) -> str:
        """Return the public key as a line of a file of authorized keys, without a name."""
        line: bytes = self._key.export_public_key()
        return line.decode().strip()

    @property
    def private(self) -> str:
        """Return the private key's text, in the format of OpenSSH."""
        text: bytes = self._key.export_private_key()
        return text.decode()

    def __repr__(self) -> str:
        return "KeyPair()"

    def __reduce__(self) -> tuple[type[KeyPair], tuple[()]]:
        # Wherever a pool's facts are sent to, its key stays here.
        return (KeyPair, ())
