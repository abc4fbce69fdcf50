"""
JAX's connection to other processes and its backends, of which JAX has one each and no public way to change them.

What is relied on here is held by the suite `frameworks`.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import traceback
from collections.abc import Mapping
from typing import Any

import jax
import jax.extend.backend
from attrs import field, frozen
from jax._src import distributed, xla_bridge
from jax._src.lib import _jax

__all__ = ["Connection", "clear", "connected", "give", "gloo_at", "park", "taken"]

_PATIENCE = 5.0
"""Seconds in which a coordinator records that a rank leaves; it is there, so it does at once."""


@frozen(eq=False)
class Connection:
    """
    Hold what connects a process to others.

    Args:
        client: The process's own part; None if it is not connected.
        service: The coordinator, where it runs in this process.
        state: All that JAX knows of it.
    """

    client: Any
    service: Any
    state: Mapping[str, Any] = field(factory=dict)

    def close(self) -> None:
        """Leave the coordinator, which keeps running for the other ranks."""
        leaving = threading.Thread(target=self.client.shutdown, name="skyward-jax-leaving", daemon=True)
        leaving.start()
        leaving.join(_PATIENCE)
        if leaving.is_alive():
            park(self.client)


def connected() -> Any:
    """Return what JAX is connected by; None if it is by itself."""
    return distributed.global_state.client


def taken() -> Connection:
    """Take JAX's connection out of its hands, which leaves it by itself."""
    state = distributed.global_state
    found = Connection(state.client, state.service, dict(vars(state)))
    state.client = state.service = state.preemption_sync_manager = None
    state.coordinator_address = state.partition_index = None
    state.process_id, state.num_processes = 0, 1
    return found


def give(connection: Connection) -> None:
    """Restore a connection of JAX that was set aside."""
    for name, value in connection.state.items():
        setattr(distributed.global_state, name, value)


def park(thing: Any) -> None:
    """Keep something from being destroyed, which would call a coordinator that is gone, and never return."""
    if thing is not None:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def clear(error: BaseException | None = None) -> None:
    """
    Clear all backends and what is compiled for them, so that their connections to other ranks end.

    Args:
        error: What a call ended with; what it kept alive of the call's variables is released.
    """
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__
    if xla_bridge.backends_are_initialized():
        jax.extend.backend.clear_backends()
        gc.collect()


def gloo_at(address: str) -> None:
    """
    Bind the ranks' sums on CPUs to one of this machine's addresses; by itself gloo takes what its name resolves to.

    Args:
        address: The address.
    """

    def made() -> Any:
        client = connected()
        if client is None or jax.config.jax_cpu_collectives_implementation != "gloo":
            return xla_bridge.make_cpu_client()
        return xla_bridge.make_cpu_client(_jax.make_gloo_tcp_collectives(client, hostname=address))

    xla_bridge._backend_factories["cpu"].factory = made
