"""The user's own modules and files on their way to nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable

from skyward.engine.source.includes import include_files
from skyward.engine.source.user_modules import LocalModules, ModuleFile
from skyward.link.payload import Payload
from skyward.link.payload_making import pack
from skyward.model.spec.image import Image


class Shipping:
    """
    Send each file once to each node, before the first call that may need it.

    Args:
        image: Whose `includes` travel beside the modules that are loaded.
        send: Sends files to the nodes there are; called in the thread that dispatches.

    Raises:
        ConfigError: If an include is not there, or too large.
    """

    def __init__(self, image: Image, send: Callable[[Payload], None]) -> None:
        self._modules = LocalModules(excludes=image.excludes)
        self._includes = include_files(image.includes, image.excludes)
        self._send = send
        # What the last node got; most nodes of a pool get the same.
        self._whole: tuple[tuple[ModuleFile, ...], list[Payload]] = ((), [])

    def send_new(self) -> None:
        """Send the files of modules that were loaded since the last time; nearly free if there are none."""
        self._modules.new_files(self._deliver)

    def all(self) -> list[Payload]:
        """Return everything, for a node that has nothing."""
        files = (*self._includes, *self._modules.all_files())
        if files != self._whole[0]:
            self._whole = files, [_packed(files)]
        return self._whole[1]

    def changed(self) -> list[Payload]:
        """Read the files again, and give those that changed."""
        files = self._modules.refresh()
        return [_packed(files)] if files else []

    def _deliver(self, files: tuple[ModuleFile, ...]) -> None:
        self._send(_packed(files))


def _packed(files: Iterable[ModuleFile]) -> Payload:
    files = tuple(files)
    return pack([json.dumps([file.path for file in files]).encode(), *(file.data for file in files)])
