"""The file that a worker process writes its stacks to, and the agent reads."""

from __future__ import annotations

import os

__all__ = ["DumpFile"]

_MOST = 1 << 20


class DumpFile:
    """Hold the file of one process, in memory where the system has such files."""

    def __init__(self) -> None:
        if hasattr(os, "memfd_create"):
            self.fd = os.memfd_create("skyward-stacks")
        else:
            # Late, because Linux has no use for it.
            import tempfile

            with tempfile.TemporaryFile() as file:
                self.fd = os.dup(file.fileno())

    def clear(self) -> None:
        """Clear it; both ends share one offset, so that the process writes from the beginning."""
        os.ftruncate(self.fd, 0)
        os.lseek(self.fd, 0, os.SEEK_SET)

    def read(self) -> str:
        """Return what was written."""
        return os.pread(self.fd, _MOST, 0).decode(errors="replace")

    def close(self) -> None:
        """Close it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
