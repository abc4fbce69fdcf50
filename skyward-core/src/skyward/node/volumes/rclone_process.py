"""Running rclone: errors in a file, keys in its environment, and its end with that of the process around it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from skyward.node.volumes.rclone_command import environment
from skyward.node.volumes.rclone_search import Rclone
from skyward.node.volumes.volume_order import VolumeOrder

__all__ = ["ENDS_WITHIN", "WriteProgress", "RcloneRunner", "end"]

ENDS_WITHIN = 10.0
"""Seconds in which rclone ends when it is asked to, before it is killed."""

_OUTPUT = 64 << 10


class WriteProgress(NamedTuple):
    """
    Say how far writing to a bucket has come.

    Args:
        moved: Bytes that rclone has read since it was started.
        failed: How often it reported an error.
        why: The last of them.
    """

    moved: int
    failed: int
    why: str


class RcloneRunner:
    """
    Run rclone for one volume.

    Args:
        order: The volume.
        rclone: The program.
        log: The file that its errors go to, this user's alone.
        variables: Where it asks for keys that end.
    """

    def __init__(self, order: VolumeOrder, rclone: Rclone, log: Path, variables: Mapping[str, str]) -> None:
        self.order = order
        self.rclone = rclone
        self.log = log
        self._variables = variables
        self._process: asyncio.subprocess.Process | None = None

    async def start(
        self, words: Sequence[str], *, output: int = asyncio.subprocess.DEVNULL
    ) -> asyncio.subprocess.Process:
        """
        Start it, with an empty log.

        Args:
            words: What follows its name.
            output: Where its standard output goes.

        Raises:
            OSError: If it cannot be started.
        """
        errors = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        try:
            self._process = await asyncio.create_subprocess_exec(
                self.rclone.path,
                *words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env={**environment(self.order, os.environ), **self._variables},
                cwd=os.sep,
                preexec_fn=_end_with_parent,
            )
            return self._process
        finally:
            os.close(errors)

    async def run(self, words: Sequence[str], *, output: int = asyncio.subprocess.DEVNULL) -> str:
        """
        Run it to its end; return what it wrote of errors if it failed, or nothing.

        Args:
            words: What follows its name.
            output: Where its standard output goes.
        """
        try:
            process = await self.start(words, output=output)
        except OSError as error:
            return f"rclone cannot be started: {error.strerror}"
        try:
            code = await process.wait()
        except asyncio.CancelledError:
            await end(process)
            raise
        return (self.words() or f"rclone ended with exit code {code}") if code else ""

    async def first_line(self, words: Sequence[str], within: float) -> tuple[bytes, str]:
        """
        Run it until it writes a line, and return that with what it wrote of errors if it failed before.

        Args:
            words: What follows its name.
            within: Seconds that it may take.
        """
        try:
            process = await self.start(words, output=asyncio.subprocess.PIPE)
        except OSError as error:
            return b"", f"rclone cannot be started: {error.strerror}"
        assert process.stdout is not None
        try:
            async with asyncio.timeout(within):
                line = await process.stdout.readline()
                if line:
                    return line, ""
                code = await process.wait()
        except TimeoutError:
            return b"", f"{self.words()}\ni/o timeout: no answer within {within:g} s"
        finally:
            await end(process)
        return b"", (self.words() or f"rclone ended with exit code {code}") if code else ""

    def moved(self) -> int:
        """Return how many bytes it has read, as the kernel counts them; 0 where that is not known."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            if self._process is not None:
                return int(Path(f"/proc/{self._process.pid}/io").read_text().split()[1])
        return 0

    def words(self) -> str:
        """Return the end of what it last wrote of errors."""
        with contextlib.suppress(OSError), open(self.log, "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _OUTPUT))
            return log.read().decode(errors="replace")
        return ""


async def end(process: asyncio.subprocess.Process, number: int = signal.SIGTERM) -> None:
    """
    End a process, by a signal and then by force.

    Args:
        process: The process.
        number: The signal.
    """
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(number)
    try:
        async with asyncio.timeout(ENDS_WITHIN):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _end_with_parent() -> None:
    """Request that the kernel ends this process, which then unmounts, when the one that started it is gone."""
    if sys.platform == "linux":
        import ctypes

        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
