"""
Ends a broadcast in which no rank gets any further, with where each of them is.
"""

from __future__ import annotations

import contextlib
import faulthandler
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from skyward.errors import ConfigError, HangError
from skyward.link.stack_dump import OTHERS_CODE
from skyward.model.instances.instance import InstanceInfo
from skyward.node.task.blackboard import Blackboard, Notes
from skyward.node.task.rendezvous import exchange
from skyward.node.task.runtime import abandon, instance_info

__all__ = ["checked_hang_timeout", "innermost", "watched"]

_LOOKS = 10
_LONGEST = 1.0
"""Seconds between two looks at most."""

_PATIENCE = 5.0
"""Seconds in which the ranks that hang have to say where they are."""

_POLL = 0.05
_RETURNED = "returned"


def checked_hang_timeout(instance: object, attribute: object, value: Any) -> None:
    """
    Refuse what is no time, for plugins that take `hang_timeout=`.

    Raises:
        ConfigError: If it is neither None nor a number of seconds above 0.

    >>> checked_hang_timeout(None, None, 0)
    Traceback (most recent call last):
        ...
    skyward.errors.ConfigError: hang_timeout must be a number of seconds above 0, not 0.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value > 0):
        raise ConfigError(f"hang_timeout must be a number of seconds above 0, not {value!r}.")


@contextmanager
def watched(
    limit: float, steps: Callable[[], int], step: str, share: Callable[[str], Sequence[str]] = exchange
) -> Iterator[None]:
    """
    Watch a rank's part of a broadcast; in any other call nothing is watched.

    Every rank has to enter it.

    Args:
        limit: Seconds within which any of the ranks has to make a step.
        steps: Counts the steps that this rank has made; called in another thread.
        step: What making one is, such as `"entered a collective"`.
        share: Returns all ranks what each of them gives; called once.
    """
    info = instance_info()
    if not info.broadcast or info.total_workers == 1:
        yield
        return
    watch = _Watch(info, Blackboard(info, share), limit, steps, step)
    # The context shows which call is to be ended.
    thread = threading.Thread(target=copy_context().run, args=(watch.run,), name="skyward-hang", daemon=True)
    thread.start()
    try:
        yield
    finally:
        watch.left.set()
        thread.join()


class _Watch:
    """Look again and again how far all ranks are; whichever sees first that none makes progress ends the broadcast."""

    def __init__(
        self, info: InstanceInfo, board: Blackboard, limit: float, steps: Callable[[], int], step: str
    ) -> None:
        self.left = threading.Event()
        self._board = board
        self._limit = limit
        self._steps = steps
        self._step = step
        self._rank = info.global_worker_index

    def run(self) -> None:
        """Look until the rank has left the broadcast."""
        # Where the head is gone, that ends the broadcast anyway.
        with contextlib.closing(self._board), contextlib.suppress(OSError, ValueError):
            self._look()
            self._board.write(at=_RETURNED)

    def _look(self) -> None:
        before: list[str] = []
        since = time.monotonic()
        while not self.left.wait(min(_LONGEST, self._limit / _LOOKS)):
            notes = self._board.write(at=str(self._steps()))
            if notes["at"] != before:
                before, since = notes["at"], time.monotonic()
            elif time.monotonic() - since > self._limit and not _judges(notes):
                # One of them is the judge: the first.
                notes = self._board.write(once="judge")
            if judges := _judges(notes):
                notes = self._board.write(stacks=_stacks())
                if judges == {str(self._rank)}:
                    self._end(notes)
                return

    def _end(self, notes: Notes) -> None:
        """Gather where the ranks are, and end the call of this one with it."""
        at = notes["at"]
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and not all(
            stack or where == _RETURNED for stack, where in zip(notes["stacks"], at, strict=True)
        ):
            time.sleep(_POLL)
            notes = self._board.write()
            at = notes["at"]
        stacks = {rank: text for rank, text in enumerate(notes["stacks"]) if text}
        silent = {rank: its if its == _RETURNED else "does not answer" for rank, its in enumerate(at)}
        where = [f"rank {rank}: {innermost(stacks[rank]) if rank in stacks else silent[rank]}" for rank in silent]
        abandon(
            HangError(
                f"No rank of {len(at)} {self._step} for {self._limit:g} s.\n  " + "\n  ".join(where),
                stacks=stacks,
                hint="\nThe error's `stacks` has all threads of each rank. Raise hang_timeout= if they only compute.",
            )
        )


def innermost(stacks: str) -> str:
    """
    Name the place in its own code that a process's main thread has come to.

    Args:
        stacks: What faulthandler wrote of all its threads, the main one last.

    >>> innermost('''Thread 0x7f (most recent call first):
    ...   File "<frozen importlib._bootstrap>", line 1176 in _find_and_load
    ...   File "/lib/python3.11/site-packages/torch/distributed/c10d.py", line 9 in all_reduce
    ...   File "/code/train.py", line 5 in train''')
    '/code/train.py, line 5 in train'
    """
    frames = [line.strip() for line in stacks.rpartition("most recent call first")[2].splitlines() if "File " in line]
    own = [frame for frame in frames if not OTHERS_CODE.search(frame)] or frames
    return own[0].removeprefix("File ").replace('"', "") if own else "at an unknown place"


def _judges(notes: Notes) -> set[str]:
    return {*notes.get("judge", ())} - {""}


def _stacks() -> str:
    """Render where all threads of this process are."""
    with tempfile.TemporaryFile() as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        return file.read().decode(errors="replace")
