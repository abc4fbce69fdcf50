"""
What ranks write at JAX's coordinator: its keys outlive a broadcast, where a program that is restarted finds none.

JAX has no public way to list them. What Python writes is noted as it is written, and what backends write is known; both
are held by the suite `frameworks`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from jax._src.lib import _jax

__all__ = ["KEYS"]

_WRITERS = ("key_value_set", "key_value_set_bytes", "key_value_increment")

_OF_BACKENDS = ("local_topology", "global_topology", "gloo")
_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


class Keys:
    """Note what this process writes, from the first look on."""

    def __init__(self) -> None:
        self._written: set[str] = set()
        self._ready = False

    def any(self) -> bool:
        """Return whether there is anything to forget."""
        return bool(self._written)

    def prepare(self) -> None:
        """Begin to note; once in a process."""
        if self._ready:
            return
        for name in _WRITERS:
            original = getattr(_jax.DistributedRuntimeClient, name, None)
            if original is not None:
                setattr(_jax.DistributedRuntimeClient, name, self._noting(original))
        self._ready = True

    def forget(self, client: Any) -> None:
        """
        Take away what this process has written.

        Args:
            client: What it is connected to the coordinator by.
        """
        written, self._written = self._written, set()
        for key in written:
            client.key_value_delete(key)

    def forget_backends(self, client: Any) -> None:
        """
        Take away what the backends of all ranks have written.

        Args:
            client: What this process is connected to the coordinator by.
        """
        for platform in _PLATFORMS:
            for part in _OF_BACKENDS:
                client.key_value_delete(f"{platform}:{part}")

    def _noting(self, write: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(write)
        def noted(client: Any, key: str, *args: Any, **kwargs: Any) -> Any:
            self._written.add(key)
            return write(client, key, *args, **kwargs)

        return noted


KEYS = Keys()
"""Keys that this process has written."""
