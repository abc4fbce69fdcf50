"""What the agent does beside the calls: measurements, heartbeats, the node's own end, and notices of reclaim."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from skyward.link.channel import Link
from skyward.link.frames import Kind, encode_json
from skyward.node.agent.child_process import ChildProcess
from skyward.node.agent.heartbeat import Heartbeat
from skyward.node.agent.notice import NoticeWatch
from skyward.node.metrics.metrics import Sampler


class Watching:
    """
    Watch what the client asked for, and report to it.

    Args:
        loop: The agent's loop.
        leave: Called when the node's life is over.
        processes: The agent's processes by their pid, which are notified when the machine is reclaimed.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, leave: Callable[[], None], processes: Mapping[int, ChildProcess]
    ) -> None:
        self._loop = loop
        self._leave = leave
        self._end: asyncio.TimerHandle | None = None
        self._sampler = Sampler(loop)
        self._processes = processes
        self._notices = NoticeWatch(loop, self.warn)
        self._heartbeat = Heartbeat(loop)

    def start(self, config: Mapping[str, Any], client: Link | None) -> None:
        """
        Begin to watch.

        Args:
            config: What node the agent is of; nothing happens where it asks for nothing.
            client: Where it is sent.
        """
        self._sampler.start(config.get("metrics", ()), client)
        self._notices.start(config.get("notice", ()), client)
        self._heartbeat.start(config.get("beat"), client)
        if config.get("life"):
            self._end = self._loop.call_later(config["life"], self._leave)

    def stop(self) -> None:
        """Watch no more."""
        if self._end is not None:
            self._end.cancel()
        self._sampler.stop()
        self._notices.stop()
        self._heartbeat.stop()

    def warn(self, notice: Mapping[str, Any]) -> None:
        """Notify what runs here that the machine is about to be reclaimed."""
        for process in self._processes.values():
            process.control.send(encode_json(Kind.NOTICE, notice))

    def reaped(self, pid: int, status: int) -> None:
        """Record that a child of the agent ended, which may be a command of ours."""
        self._sampler.reaped(pid, status)
        self._notices.reaped(pid, status)
