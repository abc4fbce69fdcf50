"""Results that have arrived at a client and were not used there, on this user's disk until the next one attaches."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from skyward.engine.instances.detached_records import DETACHED, KeptAnswer
from skyward.errors import ProtocolError
from skyward.link.frames import Frame, Parser
from skyward.link.messages import CALL
from skyward.link.order import sizes_of
from skyward.link.stored import StoredParser
from skyward.node.data.result_files import write_result

__all__ = ["forget_answers", "keep_answers", "kept_answers"]

_log = logging.getLogger(__name__)


def keep_answers(pool_id: str, answers: Iterable[KeptAnswer]) -> None:
    """
    Write results to a pool's folder, in place of those that are there.

    Args:
        pool_id: The pool.
        answers: The results.

    Raises:
        OSError: If one is not on the disk.
    """
    folder, wanted = _folder(pool_id), list(answers)
    names = {f"{answer.id:016x}" for answer in wanted}
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in names:
            path.unlink()
    for answer in wanted:
        path = folder / f"{answer.id:016x}"
        if not path.exists():
            fds = answer.payload.fds if answer.payload is not None else []
            sizes = sizes_of(Parser().feed(answer.frame)[0]) if fds else []
            write_result(str(path), answer.frame, fds, sizes, lambda: True)


def kept_answers(pool_id: str) -> Mapping[int, tuple[Frame, list[bytes]]]:
    """
    Return the results in a pool's folder, by their calls; those that are damaged are passed over.

    Args:
        pool_id: The pool.
    """
    found: dict[int, tuple[Frame, list[bytes]]] = {}
    folder = _folder(pool_id)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        try:
            data = path.read_bytes()
            for stored in StoredParser(len(data)).feed(data):
                found[CALL.unpack_from(stored.frame.body)[0]] = stored.frame, stored.buffers
        except (OSError, ProtocolError) as error:
            _log.warning("answers.unusable path=%s: %s", path, error)
    return found


def forget_answers(pool_id: str) -> None:
    """Remove a pool's folder, if there is one."""
    shutil.rmtree(_folder(pool_id), ignore_errors=True)


def _folder(pool_id: str) -> Path:
    return DETACHED.path / f"{pool_id}.answers"
