"""
Where the ranks of a broadcast find each other: torch's store, which the head serves at the pool's own port.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed as dist

from skyward import InstanceInfo, PluginError
from skyward.node.task.rendezvous import listening
from skyward_torch.agreement import verdict

__all__ = ["LIMIT", "RendezvousStore"]

T = TypeVar("T")

LIMIT = 120.0
"""Seconds within which all ranks have to be there."""

_FIRST, _LONGEST = 0.0002, 0.02
"""Seconds between two looks; short, and in Python, because a wait inside torch cannot be interrupted."""


class RendezvousStore:
    """Hold this process's connection to the store."""

    def __init__(self) -> None:
        self._place: tuple[str, int, bool] | None = None
        self._sign_of_life: socket.socket | None = None
        self._before = ""
        self.store: Any = None

    def agree(self, info: InstanceInfo, held: bytes) -> bytes:
        """
        Negotiate the group of a broadcast with the other ranks.

        Args:
            info: The rank's place.
            held: The name of the group that it holds, and what has to be the same on all; empty for none.

        Raises:
            PluginError: If the others do not come.
        """
        place = (info.head_addr, info.head_port, info.is_head)
        deadline = time.monotonic() + LIMIT
        while True:
            try:
                if self.store is None or place != self._place or self._is_over():
                    self._enter(info, deadline)
                    self._place = place
                return self._agree(info, held, deadline)
            except (dist.DistNetworkError, dist.DistStoreError):
                # Its head is another process by now.
                self.close()
                if time.monotonic() > deadline:
                    raise

    def said_by_head(self, info: InstanceInfo, value: str) -> tuple[str]:
        """
        Return all ranks of a broadcast what the head gives; once in each.

        Args:
            info: The rank's place.
            value: What it gives.
        """
        key = f"{info.broadcast}/head"
        if info.is_head:
            self.store.set(key, value)
        _until(lambda: self.store.check([key]), time.monotonic() + LIMIT, info)
        return (self.store.get(key).decode(),)

    def close(self) -> None:
        """Close the connection to the store; the head ends it."""
        self.store = self._place = None
        self._before = ""
        if self._sign_of_life is not None:
            self._sign_of_life.close()
            self._sign_of_life = None

    def _enter(self, info: InstanceInfo, deadline: float) -> None:
        self.close()
        if info.is_head:
            self.store = _serve(info, deadline)
            return
        # Nothing is sent on it. It ends with the head's process, which torch's own would report with a page of text.
        self._sign_of_life = _until(lambda: _connected(info.head_addr, info.head_port), deadline, info)
        limit = timedelta(seconds=LIMIT)
        self.store = dist.TCPStore(info.head_addr, info.head_port, is_master=False, timeout=limit)

    def _is_over(self) -> bool:
        """Return whether the head's process is gone."""
        if self._sign_of_life is None:
            return False
        try:
            return not self._sign_of_life.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def _agree(self, info: InstanceInfo, held: bytes, deadline: float) -> bytes:
        number = str(info.broadcast)
        keys = [f"{number}/{rank}" for rank in range(info.total_workers)]
        self.store.set(keys[info.global_worker_index], b"=" + held)
        decided = f"{number}/group"
        if not info.is_head:
            _until(lambda: self.store.check([decided]), deadline, info)
            chosen: bytes = self.store.get(decided)
            return chosen
        _until(lambda: self.store.check(keys), deadline, info)
        chosen = verdict([each[1:] for each in self.store.multi_get(keys)], number.encode())
        self.store.set(decided, chosen)
        self._forget(info, number)
        return chosen

    def _forget(self, info: InstanceInfo, number: str) -> None:
        """Remove what the broadcast before agreed on by; all ranks that are here now have read it."""
        if self._before:
            for rank in range(info.total_workers):
                self.store.delete_key(f"{self._before}/{rank}")
            self.store.delete_key(f"{self._before}/group")
            self.store.delete_key(f"{self._before}/head")
        self._before = number


def _serve(info: InstanceInfo, deadline: float) -> Any:
    """Open the store at the address that the others know, or at all if that is not the machine's own to see."""
    sock = _until(lambda: listening(info.head_addr, info.head_port), deadline, info)
    return dist.TCPStore(
        info.head_addr,
        info.head_port,
        is_master=True,
        wait_for_workers=False,
        timeout=timedelta(seconds=LIMIT),
        master_listen_fd=sock.detach(),
    )


def _connected(host: str, port: int) -> socket.socket | None:
    try:
        sock = socket.create_connection((host, port), timeout=1.0)
    except OSError:
        return None
    sock.setblocking(False)
    return sock


def _until(look: Callable[[], T | None], deadline: float, info: InstanceInfo) -> T:
    """Look again and again until something is there."""
    pause = _FIRST
    while not (found := look()):
        if time.monotonic() > deadline:
            raise PluginError(
                f"Rank {info.global_worker_index} of {info.total_workers} waited {LIMIT:g} s for the others at "
                f"{info.head_addr}:{info.head_port}, and they did not all come.",
                plugin="torch",
                hook="decorate",
                hint="Nodes have to reach each other at any port; look at their firewall.",
            )
        time.sleep(pause)
        pause = min(_LONGEST, pause * 1.5)
    return found
