"""Rent machines by several calls side by side, for providers whose clouds rent one, or a few, at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from skyward.errors import CapacityError, QuotaError
from skyward.model.instances.machine import InstanceState, LaunchRequest
from skyward.model.instances.tags import Tags

__all__ = ["of_token", "rented"]

Key = TypeVar("Key")
Row = TypeVar("Row")

UNDER_WAY = 5.0
"""Seconds that calls under way have to be answered when the launch is cancelled."""


async def rented(
    calls: Mapping[Key, Coroutine[Any, Any, Row]],
    *,
    before: Mapping[Key, Row],
    give_up: Callable[[], None] = lambda: None,
) -> dict[Key, Row]:
    """
    Rent by all calls, and return what came of those that went well, and what there was before.

    What is under way when one fails, or when we are cancelled, is waited for: it is a machine soon, and is to be known.

    Args:
        calls: The calls, by what each of them is for.
        before: What an earlier call with the same token rented.
        give_up: Called when we are cancelled: no call is to be tried again any more.

    Raises:
        CapacityError: If there was nothing before, and nothing was rented, for want of machines or quota.
        QuotaError: The same.
        SkywardError: If a call failed for another reason.

    >>> async def rent(name):
    ...     return {"id": name}
    >>> asyncio.run(rented({0: rent("i-0"), 1: rent("i-1")}, before={2: {"id": "i-2"}}))
    {2: {'id': 'i-2'}, 0: {'id': 'i-0'}, 1: {'id': 'i-1'}}
    """
    tasks = {key: asyncio.ensure_future(call) for key, call in calls.items()}
    if tasks:
        try:
            await asyncio.wait(tasks.values())
        except asyncio.CancelledError:
            give_up()
            await asyncio.wait(tasks.values(), timeout=UNDER_WAY)
            raise
    failures = [error for task in tasks.values() if (error := task.exception()) is not None]
    worse = [each for each in failures if not isinstance(each, CapacityError | QuotaError)]
    found = {**before, **{key: task.result() for key, task in tasks.items() if task.exception() is None}}
    if worse or (failures and not found):
        raise (worse or failures)[0]
    return found


def of_token(
    rows: Iterable[Row],
    request: LaunchRequest,
    tags: Callable[[Row], Tags | None],
    state: Callable[[Row], InstanceState],
) -> dict[int, Row]:
    """
    Return the machines that an earlier call with the same token rented and that are still there, by node.

    Args:
        rows: What the cloud lists.
        request: What core asks for.
        tags: Reads what is written on a machine; None for one that is not of Skyward.
        state: Reads its state.
    """
    found: dict[int, Row] = {}
    for row in rows:
        written = tags(row)
        if written is None or (written.pool_id, written.token) != (request.cluster.pool_id, request.token):
            continue
        if written.node is not None and state(row) in (InstanceState.PENDING, InstanceState.RUNNING):
            found[written.node] = row
    return found
