"""What the agent watches beside the calls: measurements, the node's own end, and whether the machine is reclaimed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from skyward.link.channel import Link
from skyward.node.agent.notice import NoticeWatch
from skyward.node.metrics.metrics import Sampler


class Watching:
    """
    Watch what the client asked for, and report to it.

    Args:
        loop: The agent's loop.
        leave: Called when the node's life is over.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, leave: Callable[[], None]) -> None:
        self._loop = loop
        self._leave = leave
        self._end: asyncio.TimerHandle | None = None
        self._sampler = Sampler(loop)
        self._notices = NoticeWatch(loop)

    def start(self, config: Mapping[str, Any], client: Link | None) -> None:
        """
        Begin to watch.

        Args:
            config: What node the agent is of; nothing happens where it asks for nothing.
            client: Where it is sent.
        """
        self._sampler.start(config.get("metrics", ()), client)
        self._notices.start(config.get("notice", ()), client)
        if config.get("life"):
            self._end = self._loop.call_later(config["life"], self._leave)

    def stop(self) -> None:
        """Watch no more."""
        if self._end is not None:
            self._end.cancel()
        self._sampler.stop()
        self._notices.stop()

    def reaped(self, pid: int, status: int) -> None:
        """Record that a child of the agent ended, which may be a command of ours."""
        self._sampler.reaped(pid, status)
        self._notices.reaped(pid, status)
