"""Where the store of a pool's collections is, and who uses it."""

from __future__ import annotations

import attrs

__all__ = ["StoreAddress"]


@attrs.frozen
class StoreAddress:
    """
    Say where a store is and who uses it.

    Args:
        path: The Unix socket that leads to it.
        password: What it asks for.
        generation: Another one when a new store was started because the machine of the old one was lost.
        holder: Id of the user: the attempt of a task, or the client.
        task: Id of the call, the same for its retries; empty at the client.
    """

    path: str
    password: str = attrs.field(repr=False)
    generation: str
    holder: str
    task: str
