"""
The world of this process: the one that it shares with the other ranks of broadcasts, or that of itself alone.
"""

from __future__ import annotations

import inspect
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import jax

from skyward import InstanceInfo, exchange, instance_info
from skyward.aftermath import AFTERMATH, is_aftermath
from skyward.node.welcome import open_up, reserved_socket
from skyward.one_task import OneTask
from skyward_jax import backends
from skyward_jax.places import devices, is_met
from skyward_jax.relay import Relay
from skyward_jax.undisturbed import undisturbed

__all__ = ["LIMIT", "WORLDS"]

LIMIT = 120
"""Seconds within which all ranks have to be there."""

_NEVER = 100_000_000
"""Seconds after which the coordinator gives up a silent rank; the engine knows better, and sooner."""


class Worlds:
    """Hold what there is once in a process, because JAX belongs to one world at a time."""

    def __init__(self) -> None:
        self._task = OneTask("JAX", "world")
        self._name = ""
        self._by: object = None
        self._client: Any = None
        self._relay: Relay | None = None
        self._kept: socket.socket | None = None
        self._services: list[Any] = []
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
        """Have the call's world be the one that JAX sees while it runs."""
        if self._task.is_here or backends.connected() is not self._client:
            # An integration within the plugin, or somebody else's connection: there is one already.
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
        """Put down the connection as it is: processes end at different moments, and none is to mind."""
        if self._client is not None and backends.connected() is self._client:
            connection = backends.taken()
            backends.park(connection.client)
            backends.park(connection.service)
        for service in self._services:
            backends.park(service)
        self._client, self._name, self._services = None, "", []

    def _together(self, info: InstanceInfo) -> Iterator[None]:
        """Run a rank's part of a broadcast."""
        ours = False
        try:
            self._join(info)
            ours = True
            yield
        except BaseException as error:
            try:
                if ours and is_aftermath(error):
                    time.sleep(AFTERMATH)
            finally:
                # Whoever waits for this rank in a collective is released by the end of its connections.
                self._leave(error)
            raise
        self._end_theirs()

    def _by_itself(self) -> Iterator[None]:
        """Run a call that is a world of one."""
        self._leave()
        self._place = (0, 1)
        try:
            yield
        finally:
            self._end_theirs()

    def _join(self, info: InstanceInfo) -> None:
        """Have the world of a broadcast, which is the last one's if nothing has changed."""
        by = (info.peers, info.total_workers, info.global_worker_index, info.head_addr, info.head_port)
        held = exchange(self._name if by == self._by else "", within=LIMIT)
        self._place = (info.global_worker_index, info.total_workers)
        if held[0] and len(set(held)) == 1:
            return
        self._leave()
        port = ""
        if info.is_head:
            # Nothing else can listen there before JAX does.
            self._kept = reserved_socket()
            port = str(self._kept.getsockname()[1])
        self._enter(info, int(exchange(port, within=LIMIT)[0]))
        self._name, self._by = str(info.broadcast), by

    def _enter(self, info: InstanceInfo, port: int) -> None:
        """Connect to the coordinator, which is in the head's process, and learn of all devices."""
        assert self._initialize is not None
        left, self._services = self._services, []
        backends.clear()
        if not info.is_head:
            self._relay = Relay(info.head_addr, port, LIMIT)
        before = jax.config.jax_enable_recoverability
        # One rank's end is told by the engine; JAX would end all the others.
        jax.config.update("jax_enable_recoverability", True)
        if self._kept is not None:
            open_up(self._kept)
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
        for service in left:
            # All who were connected to it are here now.
            threading.Thread(target=service.shutdown, name="skyward-jax-service", daemon=True).start()

    def _leave(self, error: BaseException | None = None) -> None:
        """Be by itself again; what a call ended with keeps nothing of the world."""
        if backends.connected() is not None:
            undisturbed(partial(self._left, error))

    def _left(self, error: BaseException | None) -> None:
        backends.clear(error)
        connection = backends.taken()
        if self._relay is not None and self._relay.lost:
            backends.park(connection.client)
        else:
            connection.close()
        if connection.service is not None:
            self._services.append(connection.service)
        if self._relay is not None:
            self._relay.close()
        if self._kept is not None:
            self._kept.close()
        self._relay = self._kept = self._client = None
        self._name = ""

    def _prepare(self, info: InstanceInfo) -> None:
        """Set JAX up, and have its functions take note of the world that is there; once in a process."""
        if self._initialize is not None:
            return
        original, shutdown = jax.distributed.initialize, jax.distributed.shutdown
        parameters = inspect.signature(original)
        self._initialize = original
        self._devices = devices(info, own_device="SKYWARD_DEVICE" in os.environ)
        if self._devices is not None:
            jax.config.update("jax_cuda_visible_devices", ",".join(map(str, self._devices)))
        # That a machine is taken away is told by its provider.
        jax.config.update("jax_enable_preemption_service", False)
        if _has_address(info.private_ip):
            backends.gloo_at(str(info.private_ip))

        @wraps(original)
        def initialize(*args: Any, **kwargs: Any) -> None:
            asked = parameters.bind(*args, **kwargs).arguments
            if self._is_ours():
                rank, ranks = self._place
                if is_met(asked, rank=rank, ranks=ranks):
                    return
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
        """Tell whether the calling thread runs a task in the world that it was given."""
        return self._task.is_here and backends.connected() is self._client

    def _end_theirs(self) -> None:
        """End what the user's code made in place of our world."""
        if backends.connected() is not self._client:
            backends.clear()
            jax.distributed.shutdown()
            backends.taken()


WORLDS = Worlds()
"""The worlds of this process."""


def _has_address(address: str | None) -> bool:
    """Tell whether an address is one of this machine's own."""
    try:
        with socket.socket() as sock:
            sock.bind((address or "", 0))
    except OSError:
        return False
    return bool(address)
