"""The processes of a node that run user code: started, restarted, replaced, and ended in order."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from skyward.link.channel import Batch
from skyward.link.frames import Frame, Kind, decode_json, encode, encode_json
from skyward.link.segment import Segment
from skyward.node.agent.child_process import ChildProcess
from skyward.node.agent.lane import WorkerLane, lane_of
from skyward.node.agent.last_answers import failure, last_answers
from skyward.node.agent.line_flow import Lines
from skyward.node.agent.members import Members

APP_PATIENCE = 30.0
"""Seconds in which plugins leave their `around_app` contexts when all else has ended at once."""


class Workers:
    """
    Hold a worker process in each lane of a node, and the app host where a plugin needs one.

    Args:
        loop: The agent's loop.
        batch: What is written together.
        directory: Where the user's files are.
        members: What each worker is sent first.
        lines: Returns where the output of processes goes.
        tell: Sends the client a frame.
        on_frame: Takes a frame of a process.
        on_put: Keeps what a task puts.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: Batch,
        directory: str,
        *,
        members: Members,
        lines: Callable[[], Lines],
        tell: Callable[[bytes], None],
        on_frame: Callable[[ChildProcess, Frame, tuple[int, ...]], None],
        on_put: Callable[[dict[bytes, Segment]], None],
    ) -> None:
        self._loop, self._batch, self._directory = loop, batch, directory
        self._members, self._lines, self._tell = members, lines, tell
        self._on_frame, self._on_put = on_frame, on_put
        self._config: dict[str, Any] = {}
        self._plugins = b""
        self._lanes: list[WorkerLane] = []
        self._app_host: ChildProcess | None = None
        self._app_environment: dict[str, str] = {}
        self._all_ended: Callable[[], None] = lambda: None
        self._left: Callable[[], None] | None = None
        self._stopping = self._refreshing = self._announced = False
        self.processes: dict[int, ChildProcess] = {}

    def start(self, config: dict[str, Any], plugins: bytes, facts: dict[str, Any]) -> None:
        """
        Start the app host, or the workers if there is none.

        Args:
            config: What node it is of.
            plugins: The plugins, pickled.
            facts: What only the node itself knows, for its workers.
        """
        self._config, self._plugins = config, plugins
        self._lanes = [WorkerLane(index, config) for index, config in enumerate(config["lanes"])]
        for lane in self._lanes:
            lane.config["facts"] |= facts
        if config["app_host"]:
            self._app_host = self._spawn(config["app_host"], lane=0, slots=1)
            self._app_host.start({"facts": config["lanes"][0]["facts"], "directory": self._directory}, plugins)
        else:
            for lane in self._lanes:
                self._start_worker(lane)

    @property
    def started(self) -> bool:
        """Return whether the client has started the node."""
        return bool(self._lanes) or self._app_host is not None

    def of(self, frame: Frame) -> ChildProcess | None:
        """
        Return the worker in the lane that a frame is for, if there is one now.

        Raises:
            ProtocolError: If there is no such lane.
        """
        return lane_of(self._lanes, frame).process

    def running(self) -> list[ChildProcess]:
        """List the workers that there are."""
        return [lane.process for lane in self._lanes if lane.process is not None]

    def tell(self, frame: bytes) -> None:
        """Send every worker a frame."""
        for process in self.running():
            process.tasks.send(frame)

    def each(self, do: Callable[[ChildProcess], object]) -> None:
        """Do something with every process."""
        for process in list(self.processes.values()):
            do(process)

    def answered(self, process: ChildProcess, lane: int) -> None:
        """Replace a worker that has run its last call."""
        if (process.retires or not self._config["reuse_processes"]) and self._lanes[lane].process is process:
            process.tasks.end()
            self._start_worker(self._lanes[lane])

    def ready(self, process: ChildProcess, frame: Frame) -> None:
        """Record that a process is ready, and let the client know once all are."""
        process.ready = True
        if process is self._app_host:
            if not self._stopping:
                self._app_environment = decode_json(frame.body)["environment"]
                for lane in self._lanes:
                    self._start_worker(lane)
            return
        for lane in self._lanes:
            if lane.process is process:
                lane.failed_starts = 0
        if all(lane.process is not None and lane.process.ready for lane in self._lanes):
            if not self._announced:
                self._announced = True
                self._tell(encode_json(Kind.READY, {"lanes": len(self._lanes)}))
            elif self._refreshing:
                self._refreshing = False
                self._tell(encode(Kind.REFRESHED))

    def refresh(self) -> None:
        """Restart every worker; the client sends no task until that is done."""
        self._refreshing = True
        self.each(lambda process: process.tasks.end() if process is not self._app_host else None)

    def stop(self, grace: float, then: Callable[[], None]) -> None:
        """
        End every process in order, the app host last.

        Args:
            grace: Seconds after which what is left is killed.
            then: Called when all have ended, and their output was sent.
        """
        self._stopping, self._all_ended = True, then
        workers = [process for process in self.processes.values() if process is not self._app_host]
        if workers:
            for process in workers:
                process.tasks.end()
        elif self._app_host is not None and self._app_host.pid in self.processes:
            self._app_host.tasks.end()
        else:
            self._lines().when_sent(self._all_ended)
        self._loop.call_later(grace, self.each, ChildProcess.kill)

    def leave(self, left: Callable[[], None]) -> None:
        """Kill every process at once but the app host, which has its patience to leave what plugins hold."""
        self._stopping, self._left = True, left
        self.each(lambda process: process.kill() if process is not self._app_host else None)
        if self._app_host is not None and self._app_host.pid in self.processes:
            self._app_host.tasks.end()
            self._loop.call_later(APP_PATIENCE, left)
        else:
            left()

    def _start_worker(self, lane: WorkerLane) -> None:
        slots = self._config["slots"]
        lane.process = self._spawn(lane.config, lane=lane.index, slots=slots)
        config = {"facts": lane.config["facts"], "slots": slots, "directory": self._directory}
        lane.process.start(config, self._plugins)
        for members in self._members.versions():
            lane.process.tasks.send(members)

    def _spawn(self, config: dict[str, Any], *, lane: int, slots: int) -> ChildProcess:
        process = ChildProcess(
            self._loop,
            self._batch,
            argv=config["argv"],
            env={**os.environ, **config["env"], **self._app_environment},
            lane=lane,
            slots=slots,
            on_frame=self._on_frame,
            on_put=self._on_put,
            on_lines=self._lines().say,
            on_ended=self._on_ended,
        )
        self.processes[process.pid] = process
        return process

    def _on_ended(self, process: ChildProcess) -> None:
        if self._left is not None:
            if process is self._app_host:
                self._left()
            return
        for frame in last_answers(process):
            self._tell(frame)
        if self._stopping:
            if not self.processes:
                self._lines().when_sent(self._all_ended)
            elif list(self.processes.values()) == [self._app_host] and self._app_host is not None:
                self._app_host.tasks.end()
            return
        if process is self._app_host:
            self._tell(failure("the app host, which holds the plugins' around_app contexts, ended", process))
            return
        for lane in self._lanes:
            if lane.process is process:
                self._replace(lane, process)

    def _replace(self, lane: WorkerLane, process: ChildProcess) -> None:
        if lane.gives_up(announced=self._announced):
            self._tell(failure(f"worker {lane.index} ended before it was ready", process))
            return
        try:
            self._start_worker(lane)
        except OSError as error:
            self._tell(failure(f"worker {lane.index} could not be started again: {error}", process))
