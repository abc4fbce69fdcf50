"""
How a transfer of stored data between two nodes can end.
"""

from __future__ import annotations

from enum import IntEnum


class TransferOutcome(IntEnum):
    """How a transfer between two nodes ended, as the node that fetched says."""

    OK = 0
    """It has the buffer, and its checksum is right."""
    UNREACHED = 1
    """There was no connection, or what answered is not of the pool."""
    GONE = 2
    """The source does not have the buffer."""
    STALLED = 3
    """The source stopped to send, or sent too slowly."""
    WRONG = 4
    """The bytes are not those of the buffer."""
    UNABLE = 5
    """The node itself cannot fetch anything."""
