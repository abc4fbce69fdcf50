"""
Counts the collectives of this process that raised: a task may catch that, and its group is of no use any more.

torch has no public way to ask. It logs each that raises, which is held by the suite `frameworks`.
"""

from __future__ import annotations

import logging

from torch.distributed import c10d_logger

__all__ = ["FAILED"]


class Failed(logging.Filter):
    """Count from the first look on, in the whole process."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def prepare(self) -> None:
        """Begin to count; once in a process."""
        c10d_logger._c10d_logger.addFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for everything, and count what says that a collective raised."""
        self.count += isinstance(record.msg, dict) and "error" in record.msg
        return True


FAILED = Failed()
"""The collectives of this process that raised."""
