"""What is known of a bucket's copy: its files and objects as they were when they were last the same."""

from __future__ import annotations

import asyncio

from attrs import define, field

from skyward.node.volumes.bucket_changes import ObjectState
from skyward.node.volumes.changes import FileState

__all__ = ["CopyLedger"]


@define(eq=False)
class CopyLedger:
    """
    Hold what both ways of keeping a copy in step go by.

    Args:
        files: Files as they were last copied, either way.
        objects: Their objects as they were then; None for those that were sent from here and not listed since.
        turn: Held by what compares and changes files.
    """

    files: dict[str, FileState] = field(factory=dict)
    objects: dict[str, ObjectState | None] = field(factory=dict)
    turn: asyncio.Lock = field(factory=asyncio.Lock)

    def fetched(self, files: dict[str, FileState]) -> None:
        """Record files that were copied from the bucket, and bear the times of their objects."""
        self.files |= files
        self.objects |= {name: ObjectState.of_copy(state) for name, state in files.items()}

    def sent(self, files: dict[str, FileState]) -> None:
        """Record files that were copied to the bucket."""
        self.files |= files
        self.objects |= dict.fromkeys(files)

    def removed(self, name: str) -> None:
        """Record that neither the file nor its object is there any more."""
        self.files.pop(name, None)
        self.objects.pop(name, None)
