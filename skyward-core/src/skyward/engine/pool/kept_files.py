"""Files that tasks have their client keep: the loop's side, and the thread that writes and reads them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

from skyward import private
from skyward.engine.guardian.journal import journal_path
from skyward.engine.pool.event_loop import EngineLoop
from skyward.engine.pool.kept_versions import KeptVersions, named
from skyward.errors import ProtocolError
from skyward.link.frames import Frame
from skyward.link.keeping import PIECE, WINDOW, check_announced, decode_kept, encode_kept
from skyward.link.windows import OVERHEAD
from skyward.plan.config.request import UNNAMED

if TYPE_CHECKING:
    from skyward.engine.nodes.node_shell import NodeShell

__all__ = ["MOST_WAITING", "KeptFiles", "checkpoints_folder", "named_folder"]

MOST_WAITING: Final = 4 * WINDOW
"""Requests of one worker that may wait: those of the process that was there before are answered, too."""

MOST_UNREAD: Final = 2 * WINDOW * PIECE
"""Bytes of answers that one worker may leave unread."""

CLOSES_WITHIN: Final = 30.0
"""Seconds in which the thread has to write what it began when its pool is closed."""


def checkpoints_folder() -> Path:
    """Return the folder around all checkpoints that clients of this user keep, beside their journal."""
    return journal_path().parent / "checkpoints"


def named_folder(pool: str | None = None) -> Path:
    """
    Return the folder of what tasks of a pool have saved under keys.

    Args:
        pool: The pool's name; None for one that has none.
    """
    folder = named(checkpoints_folder(), pool or UNNAMED)
    private.directory(folder.parent)
    return folder


class KeptFiles:
    """
    Answer what workers ask of their client; lives in the engine's loop, and has a thread once it is asked anything.

    Args:
        engine: The loop.
        pool: The pool's id.
        name: The pool's name.
    """

    def __init__(self, engine: EngineLoop, pool: str, name: str) -> None:
        self._engine = engine
        self._pool = pool
        self._name = name
        self._waiting: Counter[NodeShell] = Counter()
        self._unread: Counter[NodeShell] = Counter()
        self._work: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._versions: KeptVersions | None = None

    def announced(self, frame: Frame) -> bool:
        """
        Return that the bytes of a request are wanted.

        Raises:
            ProtocolError: If they are too many.
        """
        check_announced(frame)
        return True

    def take(self, shell: NodeShell, frame: Frame, fds: tuple[int, ...], lanes: int) -> None:
        """
        Take a request; it is answered once it is carried out.

        Args:
            shell: The node.
            frame: The request.
            fds: What came with it; taken over.
            lanes: How many workers the node has.

        Raises:
            ProtocolError: If it is none, or the node does not wait for its answers, or does not read them.
        """
        if self._waiting[shell] >= MOST_WAITING * lanes or self._unread[shell] > MOST_UNREAD * lanes:
            raise ProtocolError(
                f"A node sent a KEEP frame beyond its window: {self._waiting[shell]} wait for their answers, and "
                f"{self._unread[shell]} bytes of answers are yet to be read."
            )
        asked = decode_kept(frame.body, fds)
        self._waiting[shell] += 1

        def work() -> None:
            assert self._versions is not None
            head, data = self._versions.answer(shell, asked.head, asked.data)
            self._engine.post(self._answered, shell, frame.lane, asked.number, head, data)

        self._put(work)

    def lost(self, shell: NodeShell) -> None:
        """Forget what a node was sending."""
        self._unread.pop(shell, None)
        if self._versions is not None:
            self._put(partial(self._versions.lost, shell))

    def close(self) -> None:
        """Remove what only this pool needed; blocks."""
        if self._thread is not None:
            self._work.put(None)
            self._thread.join(CLOSES_WITHIN)

    def _put(self, work: Callable[[], None]) -> None:
        if self._thread is None:
            self._versions = KeptVersions(checkpoints_folder(), self._pool, self._name)
            self._thread = threading.Thread(target=self._run, name="skyward-kept-files", daemon=True)
            self._thread.start()
        self._work.put(work)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()
        if self._versions is not None:
            self._versions.close()

    def _answered(self, shell: NodeShell, lane: int, number: int, head: dict[str, object], data: bytes) -> None:
        self._waiting[shell] -= 1
        if not self._waiting[shell]:
            del self._waiting[shell]
        if shell.link is not None:
            body, payload = encode_kept(number, head, data)
            size = OVERHEAD + payload.size
            self._unread[shell] += size
            shell.link.send_kept(lane, body, payload, partial(self._read, shell, size))

    def _read(self, shell: NodeShell, size: int) -> None:
        if self._unread[shell] > size:
            self._unread[shell] -= size
        else:
            del self._unread[shell]
