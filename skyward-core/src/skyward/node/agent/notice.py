"""Learn that the machine will be reclaimed, by a command of its provider."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from skyward.link.channel import Link
from skyward.link.frames import Kind, encode_json
from skyward.node.agent.agent_command import AgentCommand

INTERVAL = 5.0
"""Seconds between two questions."""

_TIMEOUT = 10.0
_LONGEST = 500
"""Letters of a reason: a frame with one is small, whichever letters they are."""

_log = logging.getLogger(__name__)


class NoticeWatch:
    """
    Ask at intervals, and report each kind of notice to the client once.

    Nothing is asked any more once the end is certain.

    Args:
        loop: The agent's loop.
        warn: Called with a notice that is certain.
        interval: Seconds between two questions.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        warn: Callable[[dict[str, Any]], None] = lambda _: None,
        interval: float = INTERVAL,
    ) -> None:
        self._loop = loop
        self._warn, self._interval = warn, interval
        self._argv: tuple[str, ...] = ()
        self._client: Link | None = None
        self._reported: set[bool] = set()
        self._command: AgentCommand | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failed = False

    def start(self, argv: Sequence[str], client: Link | None) -> None:
        """
        Begin to ask.

        Args:
            argv: What says so: it prints nothing, or a notice as JSON; nothing happens without it.
            client: Where it is sent.
        """
        self._argv, self._client = tuple(argv), client
        if self._argv:
            self._ask()

    def stop(self) -> None:
        """Ask no more, and end the command under way."""
        self._argv = ()
        if self._timer is not None:
            self._timer.cancel()
        if self._command is not None:
            self._command.kill()

    def reaped(self, pid: int, status: int) -> None:
        """Record that a child of the agent ended, which may be the command."""
        if self._command is not None and self._command.pid == pid:
            command, self._command = self._command, None
            command.reaped(status)

    def _ask(self) -> None:
        if self._command is None:
            try:
                self._command = AgentCommand(self._loop, self._argv, _TIMEOUT, self._answered)
            except (OSError, ValueError) as error:
                self._answered("", str(error))
        if self._argv:
            self._timer = self._loop.call_later(self._interval, self._ask)

    def _answered(self, output: str, why: str) -> None:
        found = None
        try:
            found = notice(output)
        except ValueError as error:
            why = str(error)
        if why and not self._failed:
            # On stderr, where the client finds an agent's last words.
            _log.warning("notice.failed reason=%s", why)
        self._failed = bool(why)
        if found is None or found["certain"] in self._reported or self._client is None:
            return
        self._reported.add(found["certain"])
        self._client.send(encode_json(Kind.NOTICE, found))
        if found["certain"]:
            self._warn(found)
            self.stop()


def notice(output: str) -> dict[str, Any] | None:
    """
    Read what the command printed.

    Args:
        output: All of it.

    Returns:
        The notice: `reason`, `certain`, and `at`, in seconds since 1970 or None; None if there is none.

    Raises:
        ValueError: If it is no notice.

    >>> notice("")
    >>> notice('{"reason": "reclaimed", "certain": true, "at": 1e9}')["at"]
    1000000000.0
    """
    if not output.strip():
        return None
    found = json.loads(output)
    if not isinstance(found, dict):
        raise ValueError(f"a notice is an object, not {output.strip()[:80]!r}")
    at = found.get("at")
    return {
        "reason": str(found.get("reason", ""))[:_LONGEST] or "its provider reclaims it",
        "certain": bool(found.get("certain", True)),
        "at": float(at) if isinstance(at, int | float) else None,
    }
