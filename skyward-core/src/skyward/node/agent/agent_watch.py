"""What the agent does beside the calls: measurements, heartbeats, health, the node's own end, notices of reclaim."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any

from skyward.link.channel import Link
from skyward.link.frames import Kind, encode_json
from skyward.node.agent.child_process import ChildProcess
from skyward.node.agent.heartbeat import Heartbeat
from skyward.node.agent.notice import NoticeWatch
from skyward.node.health.built_in import BuiltInChecks
from skyward.node.health.user_check import UserCheck
from skyward.node.metrics.metrics import Sampler

MOST_REPORTS = 1000
"""Warnings of checks that are sent in a node's life."""


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
        self._client: Link | None = None
        self._reports = 0
        self._check = UserCheck(loop, self._report)
        self._built_in = BuiltInChecks(loop, self._report)

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
        self._client = client
        if config.get("health"):
            self._check.start({**config["health"], "directory": config["directory"]})
        if config.get("checks"):
            self._built_in.start([config["directory"], os.getcwd()])
        if config.get("life"):
            self._end = self._loop.call_later(config["life"], self._leave)

    def stop(self) -> None:
        """Watch no more."""
        if self._end is not None:
            self._end.cancel()
        self._sampler.stop()
        self._notices.stop()
        self._heartbeat.stop()
        self._check.stop()
        self._built_in.stop()

    def warn(self, notice: Mapping[str, Any]) -> None:
        """Notify what runs here that the machine is about to be reclaimed."""
        for process in self._processes.values():
            process.control.send(encode_json(Kind.NOTICE, notice))

    def reaped(self, pid: int, status: int) -> None:
        """Record that a child of the agent ended, which may be a command of ours."""
        self._sampler.reaped(pid, status)
        self._notices.reaped(pid, status)
        self._check.reaped(pid, status)
        self._built_in.reaped(pid, status)

    def _report(self, failed: Mapping[str, Any]) -> None:
        self._reports += 1
        # The client takes so many of a node in its life; what is certain has to come through.
        if self._client is not None and (self._reports < MOST_REPORTS or failed["certain"]):
            self._client.send(encode_json(Kind.NOTICE, {**failed, "at": None}))
