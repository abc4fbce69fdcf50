"""
The books of the rehearsal cloud: a file for each machine, which every process can read.

What a machine does follows from what is written and from the time, so that all readers agree on it.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
from attrs import evolve, frozen

from skyward import private
from skyward.model.instances.machine import EndsOwnBill, Instance, InstanceState, LocalAddress
from skyward.model.instances.tags import Tags
from skyward.testing.market import GRANULARITY, NAME

__all__ = ["Books", "Machine"]

HINT = "Rehearsal(directory=...) may name another directory."

GRACE = 1200.0
"""Seconds past its expiry after which a machine terminates: long after it can be found as forgotten."""


@frozen(kw_only=True)
class Machine:
    """
    Describe one machine, as it is written in the books; times are seconds since 1970.

    Args:
        id: Its name.
        tags: What its client wrote on it.
        instance_type: What kind it is.
        region: Where it is.
        zone: Where it is there.
        spot: Whether it may be reclaimed.
        rate: What it costs, in USD per hour.
        on_demand_rate: What it would cost on demand, in USD per hour.
        host: The directory that stands for it.
        launched_at: When it was rented.
        boots_at: When it runs; None never.
        fate: What becomes of it, in words; empty for nothing.
        taken_at: When it is reclaimed; None never.
        ended_at: When it was ended; None while it is there.
        ends_own_bill: Whether it terminates when it is expired, as `ProviderFacts` has it.
    """

    id: str
    tags: Mapping[str, str]
    instance_type: str
    region: str | None
    zone: str | None
    spot: bool
    rate: float
    on_demand_rate: float | None
    host: str
    launched_at: float
    boots_at: float | None
    fate: str = ""
    taken_at: float | None = None
    ended_at: float | None = None
    ends_own_bill: EndsOwnBill = True

    @property
    def pool_id(self) -> str:
        """Return the pool it is tagged with."""
        return self._tags.pool_id

    @property
    def node(self) -> int:
        """Return the node that it was rented for."""
        return self._tags.node or 0

    @property
    def token(self) -> str:
        """Return the request that rented it."""
        return self._tags.token

    @property
    def _tags(self) -> Tags:
        tags = Tags.from_strings(self.tags)
        assert tags is not None
        return tags

    def gone_at(self) -> float | None:
        """
        Return when it stopped, or will stop, to cost anything; None if nothing ends it.

        A machine terminates when its client has not renewed its expiry in time, if it can.
        """
        able = self.boots_at is not None if self.ends_own_bill == "running" else self.ends_own_bill
        # An expiry of 0 is no time: it says that the pool is being ended.
        expires_at = self._tags.expires_at or None if able else None
        moments = (self.ended_at, self.taken_at, None if expires_at is None else expires_at + GRACE)
        return min((moment for moment in moments if moment is not None), default=None)

    def state(self, now: float) -> InstanceState:
        """
        Return what it does.

        Args:
            now: The time.
        """
        gone = self.gone_at()
        if gone is not None and gone <= now:
            return InstanceState.ENDED
        return InstanceState.RUNNING if self.boots_at is not None and self.boots_at <= now else InstanceState.PENDING

    def cost(self, now: float) -> float:
        """
        Return what it has cost, in USD: from the launch on, and every second that was begun.

        Args:
            now: The time.
        """
        gone = self.gone_at()
        seconds = max(0.0, min(now, now if gone is None else gone) - self.launched_at)
        return math.ceil(seconds / GRANULARITY) * GRANULARITY * self.rate / 3600

    def instance(self, now: float) -> Instance:
        """
        Describe it as providers do.

        Args:
            now: The time.
        """
        state = self.state(now)
        running = state is InstanceState.RUNNING
        return Instance(
            id=self.id,
            node=self.node,
            provider=NAME,
            state=state,
            address=LocalAddress(self.host) if running else None,
            instance_type=self.instance_type,
            region=self.region,
            spot=self.spot,
            hourly_rate=self.rate,
            on_demand_rate=self.on_demand_rate,
            ip="127.0.0.1" if running else None,
            private_ip="127.0.0.1" if running else None,
            tags=self._tags,
            launched_at=self.launched_at,
        )


class Books:
    """
    Keep the books in a directory.

    Args:
        directory: Where they are, for this user alone; made when something is written.
    """

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._rows = self._directory / "machines"
        self._counts = self._directory / "counts"
        self._hosts = self._directory / "hosts"

    def machines(self) -> list[Machine]:
        """
        List all machines that were ever rented, the oldest first, those of one launch by node.

        Raises:
            ConfigError: If another user could change what is written: what machines run in is deleted by it.
        """
        if not self._directory.exists():
            return []
        private.directory(self._directory, hint=HINT)
        found = []
        for path in self._rows.glob("*.json"):
            # It may have been cleared away this moment.
            with suppress(FileNotFoundError):
                found.append(Machine(**json.loads(path.read_text())))
        found = [machine for machine in found if Path(machine.host).parent == self._hosts]
        return sorted(found, key=lambda machine: (machine.launched_at, machine.node, machine.id))

    def has(self, name: str) -> bool:
        """Return whether a machine of this name is written in them."""
        return (self._rows / f"{name}.json").is_file()

    def new_host(self) -> tuple[str, str]:
        """Return the name of a machine to come, and its directory; short, because of the sockets in it."""
        name = f"m-{secrets.token_hex(4)}"
        return name, str(self._hosts / name)

    def write(self, machine: Machine) -> None:
        """Write a machine down, in one piece."""
        path = self._rows / f"{machine.id}.json"
        private.directory(self._rows, hint=HINT)
        draft = path.with_suffix(f".{secrets.token_hex(4)}")
        draft.write_text(json.dumps(attrs.asdict(machine), indent=1))
        draft.replace(path)

    def change(self, name: str, how: Callable[[Machine], Machine]) -> None:
        """Change what is written about a machine; nothing if there is none of this name."""
        with self.locked():
            path = self._rows / f"{name}.json"
            if path.is_file():
                self.write(how(Machine(**json.loads(path.read_text()))))

    def end(self, name: str) -> None:
        """Write down that a machine was ended now, if it was there."""
        now = time.time()
        self.change(name, lambda machine: machine if machine.ended_at else evolve(machine, ended_at=now))

    def use(self, scope: str, what: str, times: int) -> bool:
        """
        Count that something happened.

        Args:
            scope: To whom: a pool's id.
            what: Its name.
            times: How often it may happen.

        Returns:
            Whether it may have happened this time.
        """
        with self.locked():
            path = self._counts / f"{scope}.json"
            counts: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
            counts[what] = counts.get(what, 0) + 1
            private.directory(path.parent, hint=HINT)
            path.write_text(json.dumps(counts))
            return bool(counts[what] <= times)

    def forget_counts(self, scope: str) -> None:
        """Remove what was counted for a pool that is gone."""
        (self._counts / f"{scope}.json").unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove them, with what is left of the machines; what else lies in the directory stays."""
        for path in (self._rows, self._counts, self._hosts):
            private.remove(path)
        with suppress(OSError):
            (self._directory / "lock").unlink()
            self._directory.rmdir()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the books, so that no other process and no other thread changes them meanwhile."""
        # Only for the user: what runs on machines is in there.
        private.directory(self._directory, hint=HINT)
        descriptor = private.opened(self._directory / "lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
