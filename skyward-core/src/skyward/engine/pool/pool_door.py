"""
A door of each open pool for other programs of this user, such as `sky stacks`: a Unix socket in the state directory.

A question is one line of JSON, `{"pool": name or null, "node": index or null}`, and so is its answer,
`{"pool", "text"}`; a pool of another name answers without a text.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyward import private
from skyward.engine.guardian.journal import STATE_HINT, journal_path
from skyward.engine.pool.pool_stacks import pool_stacks
from skyward.errors import SkywardError

if TYPE_CHECKING:
    from skyward.engine.pool.running import Running

__all__ = ["answering", "ask_pools"]

_log = logging.getLogger(__name__)

ANSWER_TIMEOUT = 15.0
"""Seconds that a pool has to answer; its nodes have less."""

_MOST = 64 << 20
_QUESTION = 4096


@contextlib.contextmanager
def answering(running: Running) -> Iterator[None]:
    """
    Answer other programs of this user; where that cannot be done, they do not find the pool.

    Args:
        running: The pool.
    """
    door = _Door(running)
    try:
        running.engine.run(door.open())
    except (OSError, SkywardError) as error:
        _log.info("door.closed pool=%s reason=%s", running.name, error)
    try:
        yield
    finally:
        running.engine.run(door.close())


def ask_pools(pool: str | None, node: int | None) -> dict[str, str]:
    """
    Ask the open pools of this user on this machine where their workers are.

    Args:
        pool: The only pool that is asked, by its name; None for all.
        node: The only node; None for all.

    Returns:
        What is said of each: under the pool's name and the socket's, as names may be used twice.
    """
    answers = {}
    question = json.dumps({"pool": pool, "node": node}).encode() + b"\n"
    for path in sorted(_folder().glob("*.sock")):
        try:
            answer = _asked(path, question)
        except ConnectionRefusedError:
            # Its program was killed.
            with contextlib.suppress(OSError):
                path.unlink()
        except (OSError, ValueError) as error:
            answers[f"{path.stem}"] = f"The pool does not answer: {error}."
        else:
            if "text" in answer:
                answers[f"{answer['pool']} ({path.stem})"] = str(answer["text"])
    return answers


def _asked(path: Path, question: bytes) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as sock, _short(path) as short:
        sock.settimeout(ANSWER_TIMEOUT)
        sock.connect(short)
        sock.sendall(question)
        with sock.makefile("rb") as file:
            answer = json.loads(file.readline(_MOST))
    if not isinstance(answer, dict):
        raise ValueError("its answer is no object")
    return answer


class _Door:
    """Listen for questions; lives in the engine's loop."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._path = _folder() / f"{running.provisioning.pool_id}.sock"
        self._server: asyncio.AbstractServer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        private.directory(self._path.parent, hint=STATE_HINT)
        # A client before, which was killed, may have left its own.
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        sock = socket.socket(socket.AF_UNIX)
        try:
            with _short(self._path) as short:
                sock.bind(short)
            self._server = await asyncio.start_unix_server(self._accepted, sock=sock, limit=_QUESTION)
        except BaseException:
            sock.close()
            raise

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(OSError):
            self._path.unlink()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                question = json.loads(await reader.readline())
                answer = {"pool": self._running.name}
                if question["pool"] in (None, self._running.name):
                    node = self._running.check_node(question["node"], "node")
                    stacks = await pool_stacks(self._running.instances.shells, self._running.dispatch, node)
                    answer["text"] = str(stacks)
                writer.write(json.dumps(answer).encode() + b"\n")
                await writer.drain()
        except SkywardError as error:
            writer.write(json.dumps({"pool": self._running.name, "text": str(error)}).encode() + b"\n")
        except (OSError, TimeoutError, ValueError, KeyError, TypeError) as error:
            _log.info("door.unanswered pool=%s reason=%s", self._running.name, error)
        finally:
            writer.close()


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Return a path of a socket that is short enough for one, however deep its directory lies."""
    if not os.path.isdir("/proc/self/fd"):
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def _folder() -> Path:
    return journal_path().with_name("pools")
