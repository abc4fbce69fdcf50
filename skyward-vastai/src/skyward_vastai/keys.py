"""
The pool's key on its machines, where Vast.ai itself keeps the list of authorized keys.

The script that a container runs when it starts lets the key in at once. Vast.ai owns that file, though, and writes it
anew after hours from what is attached to the machine: connections that are there would stay, and no new one come in.
"""

from __future__ import annotations

import asyncio
import logging

from attrs import evolve

from skyward.provider import CredentialsError, SkywardError
from skyward_vastai.account import Account

__all__ = ["TRIES", "WITHIN", "attach", "attach_next"]

_log = logging.getLogger(__name__)

TRIES = 8
"""Tries to attach a key, one with each listing."""

WITHIN = 10.0
"""Timeout of one try in seconds, by which a launch or a listing may be delayed."""


async def attach(account: Account, instance: str) -> None:
    """
    Attach the pool's key to a machine; where that fails, it is due again with the next list.

    Args:
        account: The account to ask.
        instance: The machine's id.
    """
    due = account.due_keys.get(instance)
    if due is None:
        return
    why: Exception
    try:
        async with asyncio.timeout(WITHIN):
            await account.api.post(
                f"/api/v0/instances/{instance}/ssh/", json={"ssh_key": due.public}, lane="ssh", subject=instance
            )
    except (SkywardError, TimeoutError) as error:
        why = error
    else:
        account.due_keys.pop(instance, None)
        return
    if due.tried + 1 < TRIES and not isinstance(why, CredentialsError):
        _log.info("key.not_attached instance=%s: %r", instance, why)
        account.due_keys[instance] = evolve(due, tried=due.tried + 1)
        return
    account.due_keys.pop(instance, None)
    _log.warning("key.not_attached instance=%s: it may let in no new connection after some hours. %r", instance, why)


async def attach_next(account: Account, pool_id: str) -> None:
    """
    Attach the key to the next machine of a pool where that has failed before; one at a time, as lists are awaited.

    Args:
        account: The account to ask.
        pool_id: The pool.
    """
    for instance, due in account.due_keys.items():
        if due.pool_id == pool_id:
            await attach(account, instance)
            return
