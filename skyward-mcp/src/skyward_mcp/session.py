"""What a server has started, within its budget; everything else is refused."""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
import time
from collections.abc import Collection
from typing import Any

from attrs import frozen

from skyward.attaching import attach
from skyward.engine.instances.owner_lock import without_client
from skyward.engine.pool.pool_file import read_named
from skyward.errors import ConfigError
from skyward.model.fields.setting import nearest
from skyward.plan.config.named_pools import NamedPool
from skyward.pool import Pool
from skyward.registry import plugin, provider, providers
from skyward_mcp.ledger import Ledger
from skyward_mcp.order import Order, provider_named, request_of
from skyward_mcp.record import Leased, Record
from skyward_mcp.started import Script, StartedPool

__all__ = ["Limits", "Session", "known_providers"]

ENDING_WITHIN = 180.0
"""Seconds that the end of a pool is waited for; it goes on behind that."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


@frozen(kw_only=True)
class Limits:
    """
    Say what a server may do.

    Args:
        budget: What all its pools together may cost, in USD.
        providers: Names of the providers that it may rent from, in small letters; None for all but this machine.
        lease: Seconds that a pool may go on without it at most; None for not at all.
    """

    budget: float
    providers: frozenset[str] | None = None
    lease: float | None = None

    def allowed(self, known: Collection[str]) -> frozenset[str]:
        """
        Return the providers that may be used, in small letters.

        Args:
            known: The names of those that are installed.

        >>> sorted(Limits(budget=1.0).allowed(["Local", "AWS", "SSH"]))
        ['aws']
        """
        small = frozenset(name.lower() for name in known)
        return small - {"local", "ssh", "container"} if self.providers is None else small & self.providers


class Session:
    """
    Start pools, and end all of them in the end.

    Args:
        limits: What it may do.
        record: What earlier servers have left; None is that of this user.
    """

    def __init__(self, limits: Limits, record: Record | None = None) -> None:
        self._limits = limits
        self._record = Record() if record is None else record
        self._pools: dict[str, StartedPool] = {}
        self._left: dict[str, Leased] = {}
        self._lock = threading.RLock()
        self._closed = False
        self._ledger = Ledger(budget=limits.budget)
        self._look_around()

    def start(
        self,
        order: Order,
        script: Script | None,
        *,
        name: str,
        budget: float | None,
        lease: float | None,
        keep: bool,
    ) -> dict[str, Any]:
        """
        Start to open a pool, and return how it stands.

        Args:
            order: What to rent.
            script: What to run there; None for nothing yet.
            name: What its name begins with.
            budget: What it may cost, in USD; None for all that is left.
            lease: Seconds that it may go on without this server; None for not at all.
            keep: Whether it stays when its scripts have ended.

        Raises:
            BudgetExceededError: If that is more than is left.
            ConfigError: If it makes no sense, or is not allowed.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(f"name must be up to 40 letters, digits, dots and hyphens, not {name!r}.")
        if script is None and not keep:
            raise ConfigError("There is no script, and the pool is not to be kept.", hint="Say script or keep=true.")
        self._check_lease(lease)
        if order.provider is not None:
            provider_named(order.provider, providers(), self._limits.allowed(providers()))
        with self._lock:
            if self._closed:
                raise ConfigError("This server ends, and starts nothing any more.")
            self._look_around()
            label = f"{name}-{secrets.token_hex(4)}"
            granted = self._ledger.asked(budget)
            made = request_of(
                order, label=label, budget=granted, lease=lease, provider_of=self._provider, named=_named_pool
            )
            if lease is not None:
                self._record.write(Leased(name=label, most=granted, keep=keep, until=time.time() + lease))
            self._ledger = self._ledger.grant(label, granted)
            started = StartedPool(
                name=label,
                pool=Pool.of(made),
                most=granted,
                lease=lease,
                keep=keep,
                script=script,
                over=self._over,
            )
            self._pools[label] = started
            started.start()
        return started.said()

    def get(self, name: str) -> StartedPool:
        """
        Return a pool; one that was left by an earlier server is attached first.

        Args:
            name: Its name.

        Raises:
            ConfigError: If no server of this user has started it, or it can't be attached.
        """
        with self._lock:
            self._look_around()
            if name in self._pools:
                return self._pools[name]
            known = [*self._pools, *self._left]
            if name not in self._left:
                close = nearest(name, known)
                raise ConfigError(
                    f"This server has started no pool {name!r}, and touches no other.",
                    pool=name,
                    hint=f"Did you mean {close!r}?" if close else f"It has started: {', '.join(known) or 'none'}.",
                )
            leased = self._left[name]
            # Its lease is counted from when it was left.
            rest = max(1.0, leased.until - time.time())
            started = StartedPool(
                name=name,
                pool=attach(name, console="silent"),
                most=leased.most,
                lease=rest,
                keep=leased.keep,
                script=None,
                over=self._over_at_last,
            )
            del self._left[name]
            self._pools[name] = started
            started.start()
            return started

    def status(self) -> dict[str, Any]:
        """Return the budget and all pools, as plain values."""
        with self._lock:
            self._look_around()
            ledger = self._ledger
            left = [
                {"pool": leased.name, "state": "detached", "budget": leased.most, "until": leased.until}
                for leased in self._left.values()
            ]
            pools = [started.said() for started in self._pools.values()]
        return {
            "budget": ledger.budget,
            "left": max(0.0, ledger.left),
            "granted": dict(ledger.granted),
            "spent": dict(ledger.spent),
            "pools": pools + left,
        }

    def end(self, name: str, *, within: float = ENDING_WITHIN) -> dict[str, Any]:
        """
        End a pool, and return what it has cost.

        Args:
            name: Its name.
            within: Seconds to wait for its end; it ends behind that, too.

        Raises:
            ConfigError: If this server has not started it.
        """
        started = self.get(name)
        started.end()
        started.join(within)
        return started.said()

    def close(self) -> None:
        """End all pools but those with a lease, which are detached."""
        with self._lock:
            self._closed = True
            pools = list(self._pools.values())
        for started in pools:
            started.end(leave=True)
        deadline = time.monotonic() + ENDING_WITHIN
        for started in pools:
            started.join(max(0.0, deadline - time.monotonic()))

    def _over(self, started: StartedPool, cost: float) -> None:
        with self._lock:
            self._ledger = self._ledger.settle(started.name, cost)
        if started.lease is not None:
            # Where that fails it is forgotten when its lease is over.
            with contextlib.suppress(OSError):
                self._record.remove(started.name)

    def _over_at_last(self, started: StartedPool, _: float) -> None:
        """Record the end of a pool that was attached, whose cost before that is unknown: no more than its grant."""
        if started.opened:
            self._over(started, started.most)

    def _look_around(self) -> None:
        """Find what earlier servers have left, which counts as granted until it is over."""
        waiting = {about.pool_name for about in without_client()}
        there = {leased.name: leased for leased in self._record.all(time.time()) if leased.name in waiting}
        there = {name: leased for name, leased in there.items() if name not in self._pools}
        for name in set(self._left) - set(there):
            self._ledger = self._ledger.settle(name, self._left[name].most)
        for name in set(there) - set(self._left):
            self._ledger = self._ledger.grant(name, there[name].most)
        self._left = there

    def _check_lease(self, lease: float | None) -> None:
        if lease is None:
            return
        if self._limits.lease is None:
            raise ConfigError(
                "A pool may not go on without this server.",
                hint="Only its user can allow it: skyward-mcp --lease SECONDS",
            )
        if not 0 < lease <= self._limits.lease:
            raise ConfigError(f"lease must be between 0 and {self._limits.lease:g} seconds, not {lease:g}.")

    def _provider(self, name: str) -> Any:
        return provider(provider_named(name, providers(), self._limits.allowed(providers())))()


def _named_pool(name: str) -> NamedPool:
    return read_named(name, provider_of=provider, plugin_of=plugin)


def known_providers(names: Collection[str]) -> frozenset[str]:
    """
    Return providers in small letters.

    Args:
        names: As they were written.

    Raises:
        ConfigError: If one of them is not installed.

    >>> sorted(known_providers(["Local"]))
    ['local']
    """
    small = frozenset(name.lower() for name in providers())
    return frozenset(provider_named(name, providers(), small).lower() for name in names)
