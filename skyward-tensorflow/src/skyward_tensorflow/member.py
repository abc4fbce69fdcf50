"""
What this process is to clusters of TensorFlow: a member of one at most, as long as it lives.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

from skyward import InstanceInfo, WorkerSpentError, exchange, instance_info, retire
from skyward.node.agent.handshake import release_port, reserved_socket
from skyward.one_task import OneTask
from skyward_tensorflow import context
from skyward_tensorflow.config import State, is_aftermath, met, tf_config

__all__ = ["AFTERMATH", "MEMBER"]

AFTERMATH = 3.0
"""Seconds that a rank keeps back what is only the consequence of another one's end, which is to be reported first."""


class Member:
    """Hold what there is once in a process, because TensorFlow has one runtime in each."""

    def __init__(self) -> None:
        self._task = OneTask("TensorFlow", "cluster")
        self._kept: socket.socket | None = None
        self._cluster: tuple[str, ...] = ()

    @contextmanager
    def around(self) -> Iterator[None]:
        """Set TF_CONFIG to the call's cluster while it runs, in a process that can be in it."""
        if self._task.is_here:
            # An integration within the plugin: it is there already.
            yield
            return
        with self._task:
            info = instance_info()
            if info.broadcast and info.total_workers > 1:
                yield from self._together(info)
            else:
                yield from self._by_itself()

    def _together(self, info: InstanceInfo) -> Iterator[None]:
        """Run a rank's part of a broadcast."""
        state = State(self._address(info), self._state())
        workers, possible = met([State.parse(said) for said in exchange(state.render())])
        if not possible:
            if state.cluster is not None:
                retire()
            raise WorkerSpentError(
                "TensorFlow joins a cluster before it computes anything, and only one in the life of a process; "
                "the ranks' processes are replaced."
            )
        if self._kept is not None:
            release_port(self._kept)
        before = os.environ.get("TF_CONFIG")
        os.environ["TF_CONFIG"] = tf_config(workers, info.global_worker_index)
        try:
            yield
            self._cluster = workers
        except BaseException as error:
            # The ranks may be in different places, from where no collective brings them together.
            if context.is_used():
                retire()
            if is_aftermath(error):
                time.sleep(AFTERMATH)
            raise
        finally:
            if before is None:
                os.environ.pop("TF_CONFIG", None)
            else:
                os.environ["TF_CONFIG"] = before

    def _by_itself(self) -> Iterator[None]:
        """Run a call that is a world of one."""
        if context.is_in_cluster():
            retire()
            raise WorkerSpentError("TensorFlow cannot leave a cluster that it has joined; the process is replaced.")
        yield

    def _state(self) -> tuple[str, ...] | None:
        """Return the cluster that the process is in; none for one that computes by itself, None for an unused one."""
        if context.is_in_cluster():
            return self._cluster
        return () if context.is_used() else None

    def _address(self, info: InstanceInfo) -> str:
        """
        Return where TensorFlow is to serve in this process.

        The port stays bound without listening, so that nothing else can listen there until TensorFlow is to.
        """
        if self._kept is None:
            self._kept = reserved_socket()
        host = info.private_ip or info.ip or "127.0.0.1"
        return f"{f'[{host}]' if ':' in host else host}:{self._kept.getsockname()[1]}"


MEMBER = Member()
"""What this process is."""
