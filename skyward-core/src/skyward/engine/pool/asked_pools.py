"""
How other programs of this user ask the open pools of this machine: through the Unix socket that each has.

A question is one line of JSON, `{"pool": name or id or null, "node": index or null, "about": "stacks", "facts" or
"address"}`, and so is its answer; a pool of another name answers with nothing but its name.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import field, frozen

from skyward.engine.guardian.state_folder import journal_path

__all__ = ["ANSWER_TIMEOUT", "PoolAnswer", "ask_each", "ask_pools", "door_folder", "short_path"]

ANSWER_TIMEOUT = 15.0
"""Seconds that a pool has to answer; its nodes have less."""

_MOST = 64 << 20
_SIDE_BY_SIDE = 16


@frozen(kw_only=True)
class PoolAnswer:
    """
    Hold what an open pool has answered.

    Args:
        pool_id: The pool's id.
        facts: The answer; empty for a pool that is not meant or does not answer.
        error: Why it does not answer; empty if it does.
    """

    pool_id: str
    # It may hold a key.
    facts: dict[str, Any] = field(factory=dict, repr=False)
    error: str = ""


def ask_each(
    about: str, pool: str | None = None, node: int | None = None, within: float = ANSWER_TIMEOUT
) -> list[PoolAnswer]:
    """
    Ask the open pools of this user on this machine, side by side.

    Args:
        about: What is asked for: `"stacks"`, `"facts"` or `"address"`.
        pool: The only pool that is asked, by its name or id; None for all.
        node: The only node; None for all.
        within: Seconds that each has.

    Returns:
        What those say that are meant, and which do not answer.
    """
    paths = sorted(door_folder().glob("*.sock"))
    if not paths:
        return []
    # Late, because mostly nothing is open.
    from concurrent.futures import ThreadPoolExecutor

    question = json.dumps({"pool": pool, "node": node, "about": about}).encode() + b"\n"
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as threads:
        answers = list(threads.map(lambda path: _answer(path, question, within), paths))
    return [one for one in answers if one is not None]


def ask_pools(pool: str | None, node: int | None) -> dict[str, str]:
    """
    Ask the open pools of this user on this machine where their workers are.

    Args:
        pool: The only pool that is asked, by its name or id; None for all.
        node: The only node; None for all.

    Returns:
        What is said of each: under the pool's name and id, as names may be used twice.
    """
    answers = {}
    for one in ask_each("stacks", pool, node):
        if one.error:
            answers[one.pool_id] = one.error
        elif "text" in one.facts:
            answers[f"{one.facts['pool']} ({one.pool_id})"] = str(one.facts["text"])
    return answers


def _answer(path: Path, question: bytes, within: float) -> PoolAnswer | None:
    try:
        facts = _asked(path, question, within)
    except ConnectionRefusedError:
        # Its program was killed.
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    except FileNotFoundError:
        # It was left meanwhile.
        return None
    except (OSError, ValueError) as error:
        return PoolAnswer(pool_id=path.stem, error=f"The pool does not answer: {error}.")
    # One of another name says nothing else.
    return PoolAnswer(pool_id=path.stem, facts=facts) if len(facts) > 1 else None


def _asked(path: Path, question: bytes, within: float) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX) as sock, short_path(path) as short:
        sock.settimeout(within)
        sock.connect(short)
        sock.sendall(question)
        with sock.makefile("rb") as file:
            answer = json.loads(file.readline(_MOST))
    if not isinstance(answer, dict):
        raise ValueError("its answer is no object")
    return answer


@contextlib.contextmanager
def short_path(path: Path) -> Iterator[str]:
    """Return a path of a socket that is short enough for one, however deep its directory lies."""
    if not os.path.isdir("/proc/self/fd"):
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def door_folder() -> Path:
    """Return where the sockets of this user's open pools are."""
    return journal_path().with_name("pools")
