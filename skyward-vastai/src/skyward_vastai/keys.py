"""
The pool's key on its machines, where Vast.ai itself keeps the list of authorized keys.

The script that a container runs when it starts lets the key in at once. Vast.ai owns that file, though, and writes it
again after hours from what is attached to the machine: connections that are there would stay, and no new one come in.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from attrs import evolve, frozen

from skyward.provider import CredentialsError, KeyAccount, SkywardError

if TYPE_CHECKING:
    from skyward.provider import Cluster

__all__ = ["TRIES", "WITHIN", "DueKeys"]

_log = logging.getLogger("skyward.provider.vastai")

TRIES = 8
"""Tries to attach a key, one with each listing."""

WITHIN = 10.0
"""Timeout of one try in seconds, by which a launch or a listing may be delayed."""


@frozen(kw_only=True)
class _DueKey:
    """Record a key that is to be attached to a machine of a pool, and how often that failed."""

    pool_id: str
    public: str
    tried: int = 0


class DueKeys:
    """
    Hold the keys that are not attached to their machines yet.

    Args:
        account: The account to ask.
    """

    def __init__(self, account: KeyAccount) -> None:
        self._account = account
        self._due: dict[str, _DueKey] = {}

    async def add(self, instance: str, cluster: Cluster) -> None:
        """
        Attach the pool's key to a machine; where that fails, it is due again with the next list.

        Args:
            instance: The machine's id.
            cluster: The pool.
        """
        self._due[instance] = _DueKey(pool_id=cluster.pool_id, public=cluster.key.public)
        await self._attach(instance)

    async def attach_next(self, pool_id: str) -> None:
        """
        Attach the key to the next machine of a pool that lacks it; one at a time, as lists are awaited.

        Args:
            pool_id: The pool.
        """
        instance = next((name for name, due in self._due.items() if due.pool_id == pool_id), None)
        if instance is not None:
            await self._attach(instance)

    def forget(self, ids: Iterable[str]) -> None:
        """
        Drop the keys of machines that were destroyed.

        Args:
            ids: Their ids.
        """
        for name in ids:
            self._due.pop(name, None)

    async def _attach(self, instance: str) -> None:
        due, path = self._due[instance], f"/api/v0/instances/{instance}/ssh/"
        try:
            async with asyncio.timeout(WITHIN):
                await self._account.api.post(path, json={"ssh_key": due.public}, lane="ssh", subject=instance)
        except (SkywardError, TimeoutError) as error:
            if due.tried + 1 < TRIES and not isinstance(error, CredentialsError):
                _log.info("key.not_attached instance=%s: %r", instance, error)
                self._due[instance] = evolve(due, tried=due.tried + 1)
                return
            _log.warning(
                "key.not_attached instance=%s: it may let in no new connection after some hours. %r", instance, error
            )
        self._due.pop(instance, None)
