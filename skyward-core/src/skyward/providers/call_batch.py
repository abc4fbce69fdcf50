"""Create machines by several calls side by side, for clouds whose calls create one, or a few, at a time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from attrs import define, field

from skyward.errors import CapacityError, QuotaError, SkywardError

__all__ = ["CallBatch", "rented"]

_log = logging.getLogger(__name__)

UNDER_WAY = 5.0
"""Seconds that calls under way have to be answered when the launch is cancelled."""

Key = TypeVar("Key")
Row = TypeVar("Row")


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
        CapacityError: If there was nothing before, and nothing was rented, for lack of machines or quota.
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


@define(eq=False)
class CallBatch(Generic[Row]):
    """
    Create machines for the nodes of one launch, with partial success.

    Nodes are created in groups of `per_call`, and a group that the cloud has too few machines for is halved.
    After the first failure, or when the launch is cancelled, no further group is begun; what is under way then is
    awaited, because it is a machine soon. A batch is for one launch.

    Args:
        create: Creates machines for nodes by one call, and returns their rows by node.
        per_call: Machines that one call creates at most.
        at_once: Calls that are under way at the same time.

    >>> async def create(nodes):
    ...     return {node: f"i-{node}" for node in nodes}
    >>> asyncio.run(CallBatch(create).rented([0, 1, 2], before={2: "i-2"}))
    {2: 'i-2', 0: 'i-0', 1: 'i-1'}
    """

    _create: Callable[[Sequence[int]], Awaitable[Mapping[int, Row]]]
    per_call: int = field(default=1, kw_only=True)
    at_once: int = field(default=1024, kw_only=True)
    _over: SkywardError | None = field(default=None, init=False)

    async def rented(self, nodes: Iterable[int], *, before: Mapping[int, Row]) -> dict[int, Row]:
        """
        Create machines for those of the nodes that have none, and return all there are, by node.

        Args:
            nodes: The nodes.
            before: What an earlier call with the same token created.

        Raises:
            CapacityError: If there is none at all, for lack of machines or quota.
            QuotaError: The same.
            SkywardError: If a call failed for another reason.
        """
        missing = [node for node in nodes if node not in before]
        groups = [missing[begin : begin + self.per_call] for begin in range(0, len(missing), self.per_call)]
        slots = asyncio.Semaphore(self.at_once)
        calls = {group[0]: self._one(group, slots) for group in groups}
        made = await rented(calls, before={-1: before} if before else {}, give_up=self._give_up)
        return {node: row for rows in made.values() for node, row in rows.items()}

    def _give_up(self) -> None:
        self._over = CapacityError("The launch was cancelled.")

    async def _one(self, nodes: Sequence[int], slots: asyncio.Semaphore) -> Mapping[int, Row]:
        async with slots:
            if self._over is not None:
                raise self._over
            try:
                return await self._some(nodes)
            except SkywardError as error:
                self._over = error
                raise

    async def _some(self, nodes: Sequence[int]) -> Mapping[int, Row]:
        """Create machines for a group; where there are too few for all of it, for as many as there are."""
        try:
            return await self._create(nodes)
        except (CapacityError, QuotaError):
            if len(nodes) == 1:
                raise
        middle = (len(nodes) + 1) // 2
        rows = await self._some(nodes[:middle])
        if len(rows) < middle:
            return rows
        try:
            return {**rows, **await self._some(nodes[middle:])}
        except (CapacityError, QuotaError) as error:
            _log.info("launch.partial created=%d wanted=%d reason=%s", len(rows), len(nodes), error)
            return rows
