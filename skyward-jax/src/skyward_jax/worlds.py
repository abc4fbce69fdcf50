"""
The world of this process: the one that it shares with the other ranks of broadcasts, or that of itself alone.

A process is in one shared world at most, as long as it lives: libraries such as Orbax keep JAX's connection, and count
what they did by it.
"""

from __future__ import annotations

import inspect
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import jax

from skyward import InstanceInfo, WorkerSpentError, exchange, instance_info, retire
from skyward.aftermath import AFTERMATH, is_aftermath
from skyward.node.agent.handshake import release_port, reserved_socket
from skyward.one_task import OneTask
from skyward_jax import backends
from skyward_jax.keys import KEYS
from skyward_jax.places import Held, devices, is_met
from skyward_jax.relay import Relay
from skyward_jax.undisturbed import undisturbed

__all__ = ["ADDRESS", "LIMIT", "WORLDS"]

ADDRESS = "JAX_COORDINATOR_ADDRESS"
"""The variable by which programs learn where the coordinator of a broadcast is."""

LIMIT = 120
"""Seconds within which all ranks have to be there."""

_NEVER = 100_000_000
"""Seconds after which the coordinator gives up a silent rank; the engine knows better, and sooner."""


class Worlds:
    """Hold what there is once in a process, because JAX belongs to one world at a time."""

    def __init__(self) -> None:
        self._task = OneTask("JAX", "world")
        self._name = ""
        self._used = False
        self._by: object = None
        self._client: Any = None
        self._aside: backends.Connection | None = None
        self._address = ""
        self._relay: Relay | None = None
        self._kept: socket.socket | None = None
        self._place = (0, 1)
        self._devices: list[int] | None = None
        self._initialize: Callable[..., None] | None = None

    @contextmanager
    def prepared(self, info: InstanceInfo) -> Iterator[None]:
        """
        Make the process ready for tasks, and leave nothing behind.

        Args:
            info: The rank's place.
        """
        self._prepare(info)
        try:
            yield
        finally:
            self.close()

    @contextmanager
    def around(self) -> Iterator[None]:
        """Set the call's world as the one that JAX sees while it runs."""
        ours = None if self._aside is not None else self._client
        if self._task.is_here or backends.connected() is not ours:
            # An integration within the plugin, or another library's connection: there is one already.
            yield
            return
        with self._task:
            info = instance_info()
            self._prepare(info)
            if info.broadcast and info.total_workers > 1:
                yield from self._together(info)
            else:
                yield from self._by_itself()

    def close(self) -> None:
        """Close the connection as it is: processes end at different moments, and none is to fail of it."""
        connection = self._aside
        if connection is None and self._client is not None and backends.connected() is self._client:
            connection = backends.taken()
        if connection is not None:
            backends.park(connection.client)
            backends.park(connection.service)
        self._client = self._aside = None
        self._name = ""

    def _together(self, info: InstanceInfo) -> Iterator[None]:
        """Run a rank's part of a broadcast."""
        ours = False
        try:
            self._join(info)
            ours = True
            os.environ[ADDRESS] = self._address
            yield
        except WorkerSpentError:
            raise
        except BaseException as error:
            try:
                if ours and is_aftermath(error):
                    time.sleep(AFTERMATH)
            finally:
                # Ranks that wait for this one in a collective are released by the end of its connections. The ranks may
                # be in different places, from where nothing that is counted brings them together.
                self._leave(error)
                retire()
            raise
        finally:
            os.environ.pop(ADDRESS, None)
        self._end_theirs()

    def _by_itself(self) -> Iterator[None]:
        """Run a call that is a world of one; the shared one is there again for the next broadcast."""
        if self._aside is None and backends.connected() is not None:
            undisturbed(self._put_aside)
        self._place = (0, 1)
        try:
            yield
        finally:
            self._end_theirs()

    def _join(self, info: InstanceInfo) -> None:
        """
        Return the world of a broadcast, which is the last one's if nothing has changed.

        Raises:
            WorkerSpentError: If a process has been in another one.
        """
        by = (info.peers, info.total_workers, info.global_worker_index, info.head_addr, info.head_port)
        mine = Held(self._name if by == self._by else "", self._aside is None, self._used, KEYS.any())
        held = Held.of_all(exchange(mine.render(), within=LIMIT))
        self._place = (info.global_worker_index, info.total_workers)
        if held.used and not held.name:
            if self._used:
                retire()
            raise WorkerSpentError(
                "A process is in one world of JAX as long as it lives, because libraries keep what connects them; the "
                "ranks' processes are replaced."
            )
        if not held.name:
            self._meet(info, by)
            return
        if held.keys:
            # As new as a coordinator that was just started: no rank is in the broadcast before any more.
            KEYS.forget(self._client)
        if not held.attached:
            self._take_up(info)
        elif held.keys:
            exchange("", within=LIMIT)

    def _meet(self, info: InstanceInfo, by: object) -> None:
        """Create a new world."""
        self._leave()
        port = ""
        if info.is_head:
            # Nothing else can listen there before JAX does.
            self._kept = reserved_socket()
            port = str(self._kept.getsockname()[1])
        port = exchange(port, within=LIMIT)[0]
        self._enter(info, int(port))
        self._address = f"{info.head_addr}:{port}"
        self._name, self._by, self._used = str(info.broadcast), by, True

    def _put_aside(self) -> None:
        """Isolate this process, and keep what connects it to the others."""
        backends.clear()
        self._aside = backends.taken()

    def _take_up(self, info: InstanceInfo) -> None:
        """Join the shared world again, whose backends are rebuilt on all ranks."""
        if self._aside is None:
            self._put_aside()
        backends.clear()
        connection, self._aside = self._aside, None
        assert connection is not None
        backends.give(connection)
        # Keys of the last backends in the coordinator's store would collide with the next ones'.
        if info.is_head:
            KEYS.forget_backends(self._client)
        exchange("", within=LIMIT)
        jax.devices()

    def _enter(self, info: InstanceInfo, port: int) -> None:
        """Connect to the coordinator, which is in the head's process, and learn of all devices."""
        assert self._initialize is not None
        backends.clear()
        if not info.is_head:
            self._relay = Relay(info.head_addr, port, LIMIT)
        before = jax.config.jax_enable_recoverability
        # One rank's end is reported by the engine; JAX would end all the others.
        jax.config.update("jax_enable_recoverability", True)
        if self._kept is not None:
            release_port(self._kept)
        self._initialize(
            coordinator_address=f"127.0.0.1:{port if self._relay is None else self._relay.port}",
            num_processes=info.total_workers,
            process_id=info.global_worker_index,
            local_device_ids=self._devices,
            cluster_detection_method="deactivate",
            initialization_timeout=LIMIT,
            heartbeat_timeout_seconds=_NEVER,
        )
        jax.config.update("jax_enable_recoverability", before)
        self._client = backends.connected()
        jax.devices()

    def _leave(self, error: BaseException | None = None) -> None:
        """Isolate this process again; what a call ended with keeps nothing of the world."""
        if backends.connected() is not None or self._aside is not None:
            undisturbed(partial(self._left, error))

    def _left(self, error: BaseException | None) -> None:
        backends.clear(error)
        connection, self._aside = self._aside or backends.taken(), None
        if self._relay is not None and self._relay.lost:
            backends.park(connection.client)
        else:
            connection.close()
        # Other ranks may still speak to it; it ends with the process.
        backends.park(connection.service)
        if self._relay is not None:
            self._relay.close()
        if self._kept is not None:
            self._kept.close()
        self._relay = self._kept = self._client = None
        self._name = ""

    def _prepare(self, info: InstanceInfo) -> None:
        """Set JAX up, and have its functions record the world that is there; once in a process."""
        if self._initialize is not None:
            return
        original, shutdown = jax.distributed.initialize, jax.distributed.shutdown
        parameters = inspect.signature(original)
        self._initialize = original
        self._devices = devices(info, own_device="SKYWARD_DEVICE" in os.environ)
        if self._devices is not None:
            jax.config.update("jax_cuda_visible_devices", ",".join(map(str, self._devices)))
        # That a machine is taken away its provider reports.
        jax.config.update("jax_enable_preemption_service", False)
        KEYS.prepare()
        if _has_address(info.private_ip):
            backends.gloo_at(str(info.private_ip))

        @wraps(original)
        def initialize(*args: Any, **kwargs: Any) -> None:
            asked = parameters.bind(*args, **kwargs).arguments
            if self._is_ours():
                rank, ranks = self._place
                if is_met(asked, rank=rank, ranks=ranks):
                    return
                if self._aside is None:
                    self._leave()
                backends.clear()
            original(*args, **kwargs)

        @wraps(shutdown)
        def leave() -> None:
            # The next broadcast has it again; and the head's would end the other ranks.
            if not self._is_ours():
                shutdown()

        jax.distributed.initialize = initialize
        jax.distributed.shutdown = leave

    def _is_ours(self) -> bool:
        """Return whether the calling thread runs a task in the world that it was given."""
        ours = None if self._aside is not None else self._client
        return self._task.is_here and backends.connected() is ours

    def _end_theirs(self) -> None:
        """End what the user's code made in place of our world."""
        if backends.connected() is not (None if self._aside is not None else self._client):
            backends.clear()
            jax.distributed.shutdown()
            backends.taken()


WORLDS = Worlds()
"""The worlds of this process."""


def _has_address(address: str | None) -> bool:
    """Return whether an address is one of this machine's own."""
    try:
        with socket.socket() as sock:
            sock.bind((address or "", 0))
    except OSError:
        return False
    return bool(address)
