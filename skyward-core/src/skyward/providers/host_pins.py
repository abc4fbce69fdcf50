"""Host keys of machines whose cloud chooses them: trusted at the first contact, and held to from then on."""

from __future__ import annotations

import functools
import shutil
import tempfile
import weakref
from pathlib import Path

__all__ = ["HostPins"]


class HostPins:
    """
    Name a file of known hosts for each machine, for `SSHAddress(known_hosts=...)`; the files go with this object.

    Addresses and ports are handed on from one machine to the next, so each machine has a file of its own.

    Args:
        provider: The provider's name.

    >>> HostPins("shed").file("i-1").rpartition("/")[2]
    'i-1'
    """

    def __init__(self, provider: str) -> None:
        self._provider = provider

    @functools.cached_property
    def _folder(self) -> Path:
        directory = tempfile.mkdtemp(prefix=f"skyward-{self._provider}-")
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        return Path(directory)

    def file(self, instance: str) -> str:
        """
        Return the path of the file in which a machine's host key is remembered.

        Args:
            instance: The machine's id.
        """
        return str(self._folder / instance)
