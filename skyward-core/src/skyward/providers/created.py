"""The machines of an account: what its lists have, and what was created so recently that no list has it yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Generic, TypeVar

from attrs import evolve, frozen

from skyward.model.instances.machine import InstanceState, LaunchRequest
from skyward.model.instances.tags import Tags
from skyward.rest.shared import Shared

__all__ = ["LAG", "Created", "Inventory", "of_pool", "of_token"]

LAG = 60.0
"""Seconds in which a machine may be missing from lists after it was created."""

Row = TypeVar("Row")


@frozen(kw_only=True)
class Created(Generic[Row]):
    """
    Record a machine that this process created.

    Args:
        id: Its id.
        pool_id: Its pool.
        token: The request that created it.
        at: When, on the monotonic clock.
        row: The machine as a list would show it, or as the last one showed it.
        rate: Its price, in USD per hour, for the provider to read; None where rows have it.
        listed_at: When the last list that has it was asked for, on the monotonic clock; None before one.
    """

    id: str
    pool_id: str
    token: str
    at: float
    row: Row
    rate: float | None = None
    listed_at: float | None = None

    @property
    def age(self) -> float:
        """Return the seconds since it was created."""
        return time.monotonic() - self.at


class Inventory(Generic[Row]):
    """
    Hold the machines of an account: its lists, shared by all pools, with the machines that they lack as yet.

    A created machine that no list has yet is added to every list for `lag` seconds; after that only as long as
    `look` finds it. One that a list had and a later list lacks is gone.

    Args:
        lists: The account's lists by name; each returns its rows by the machines' ids.
        identity: Returns what tells accounts apart; pools of one account share each list. It may hold secrets.
        hold: Seconds for which a list is shared; one begun before the last creation is not.
        lag: Seconds in which lists may lack a created machine.
        look: Looks for a machine by its id after that: its row, or None if it is gone. None for clouds whose lists
            are all there is to ask.

    >>> async def pods():
    ...     return {"p-1": {"name": "a"}}
    >>> inventory = Inventory({"pods": pods}, identity=lambda: "key", hold=1.0)
    >>> asyncio.run(inventory.rows())
    {'p-1': {'name': 'a'}}
    """

    def __init__(
        self,
        lists: Mapping[str, Callable[[], Coroutine[Any, Any, Mapping[str, Row]]]],
        *,
        identity: Callable[[], str] = lambda: "",
        hold: float = 0.0,
        lag: float = LAG,
        look: Callable[[Created[Row]], Awaitable[Row | None]] | None = None,
    ) -> None:
        self._lists = lists
        self._identity = identity
        self._look = look
        self._shared: Shared | None = None
        self._requested_at = float("-inf")
        self._tokens: set[str] = set()
        self.lists_hold = hold
        self.lag = lag
        self.created: dict[str, Created[Row]] = {}
        """The machines that this process created, by id, until they are gone."""

    @contextmanager
    def creating(self, request: LaunchRequest) -> Iterator[None]:
        """
        Guard a call that creates machines: a list that was begun before its end may lack them, answered or not.

        Args:
            request: What core asks for.
        """
        self._tokens.add(request.token)
        try:
            yield
        finally:
            self._requested_at = time.monotonic()

    def add(self, name: str, row: Row, request: LaunchRequest, rate: float | None = None) -> None:
        """
        Record a machine that was created.

        Args:
            name: Its id.
            row: The machine as a list would show it.
            request: What core asked for.
            rate: Its price, in USD per hour, where rows do not have it.
        """
        self.created[name] = Created(
            id=name, pool_id=request.cluster.pool_id, token=request.token, at=time.monotonic(), row=row, rate=rate
        )

    def forget(self, ids: Iterable[str]) -> None:
        """
        Drop the records of machines that were terminated: no list can show them from now on.

        Args:
            ids: Their ids.
        """
        for name in ids:
            self.created.pop(name, None)

    def rate(self, name: str, otherwise: float | None = None) -> float | None:
        """
        Return the price that a created machine was recorded with.

        Args:
            name: Its id.
            otherwise: The price of one that another process created, or that was recorded without.
        """
        known = self.created.get(name)
        return otherwise if known is None or known.rate is None else known.rate

    def unlisted(self, name: str) -> bool:
        """
        Return whether a machine was created so recently that its absence from a list says nothing.

        Args:
            name: Its id.
        """
        known = self.created.get(name)
        return known is not None and known.listed_at is None and known.age < self.lag

    def shared(self) -> Shared:
        """
        Return the answers that all pools of the account share.

        Raises:
            NoCredentialsError: If there is no key to tell the account by.
        """
        # Kept, because the answers are shared only while something refers to them.
        self._shared = Shared.of(self._identity())
        return self._shared

    async def rows(self, *lists: str, pool_id: str | None = None, within: float | None = None) -> dict[str, Row]:
        """
        Return the machines of the account, by id: those that its lists have, and those that they lack as yet.

        Args:
            lists: Names of the lists to ask; none for all.
            pool_id: Add the created machines of this pool only; the lists' rows are those of all pools.
            within: How old a list may be, in seconds, that another pool asked for; None for `hold`, 0 for a new one.

        Raises:
            SkywardError: If a list fails: that is no empty list.
        """
        shared = self.shared()
        since = time.monotonic() - self._requested_at
        seconds = min(self.lists_hold if within is None else within, since)
        asked = [shared.ask(name, seconds, partial(self._asked, name)) for name in lists or self._lists]
        answers = await asyncio.gather(*asked)
        found = {name: row for _, rows in answers for name, row in rows.items()}
        return await self.completed(found, min((begun for begun, _ in answers), default=0.0), pool_id=pool_id)

    async def completed(
        self, rows: Mapping[str, Row], asked_at: float, *, pool_id: str | None = None
    ) -> dict[str, Row]:
        """
        Return a list's rows with those of the created machines that it lacks as yet.

        Args:
            rows: The list's rows, by id.
            asked_at: When the list was asked for, on the monotonic clock.
            pool_id: Consider the machines of this pool only, where the list has no others.
        """
        found = dict(rows)
        for known in [*self.created.values()]:
            if pool_id not in (None, known.pool_id):
                continue
            row = rows.get(known.id)
            if row is not None:
                listed_at = max(asked_at, known.listed_at or asked_at)
                self.created[known.id] = evolve(known, row=row, listed_at=listed_at)
                continue
            row = await self._missing(known, asked_at)
            if row is None:
                self.created.pop(known.id, None)
            elif known.id in self.created:
                found[known.id] = row
        return found

    async def of_token(
        self,
        request: LaunchRequest,
        tags: Callable[[Row], Tags | None],
        state: Callable[[Row], InstanceState],
        *lists: str,
    ) -> dict[int, Row]:
        """
        Return the machines that an earlier call with the same token created, by node; the first one asks for no list.

        Args:
            request: What core asks for.
            tags: Reads what is written on a machine; None for one that is not of Skyward.
            state: Reads its state.
            lists: Names of the lists to ask; none for all.

        Raises:
            SkywardError: If a list fails.
        """
        if request.token not in self._tokens:
            return {}
        rows = await self.rows(*lists, pool_id=request.cluster.pool_id, within=0.0)
        return of_token(rows.values(), request, tags, state)

    async def _asked(self, name: str) -> tuple[float, Mapping[str, Row]]:
        asked_at = time.monotonic()
        return asked_at, await self._lists[name]()

    async def _missing(self, known: Created[Row], asked_at: float) -> Row | None:
        """Return the row of a created machine that a list lacks; None if it is gone."""
        if asked_at < max(known.at, known.listed_at or known.at):
            # The list is older than the record.
            return known.row
        if known.listed_at is not None:
            return None
        if known.age < self.lag:
            return known.row
        return await self._look(known) if self._look is not None else None


def of_pool(rows: Mapping[str, Row], tags: Callable[[Row], Tags | None], pool_id: str) -> dict[str, Row]:
    """
    Return the machines of a pool, by id.

    Args:
        rows: The machines, by id.
        tags: Reads what is written on a machine; None for one that is not of Skyward.
        pool_id: The pool.

    >>> of_pool({"i-1": "a1", "i-2": "web"}, {"a1": Tags(pool_id="a1")}.get, "a1")
    {'i-1': 'a1'}
    """
    return {
        name: row for name, row in rows.items() if (written := tags(row)) is not None and written.pool_id == pool_id
    }


def of_token(
    rows: Iterable[Row],
    request: LaunchRequest,
    tags: Callable[[Row], Tags | None],
    state: Callable[[Row], InstanceState],
) -> dict[int, Row]:
    """
    Return the machines that an earlier call with the same token created and that still exist, by node.

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
