"""The account at Vast.ai: its machines, listed in one call for all pools, and ended together."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from skyward.provider import (
    Api,
    Login,
    Misread,
    Shared,
    SkywardError,
    end_for_good,
    identified,
    listed,
    optional,
    text,
    whole,
)
from skyward_vastai.service import find_key, service

__all__ = ["LAG", "Account", "DueKey", "Launched"]

_log = logging.getLogger(__name__)

LAG = 60.0
"""Seconds in which a machine may be missing from lists after it was rented."""

LISTS_HOLD = 1.0
"""Seconds for which all pools of the account take one list."""

TOGETHER = 0.05
"""Seconds that an end waits for others, which one call can order as well."""

PAGES = 400
"""Pages of a list, of 25 machines each, after which it is no list any more."""

Row = Mapping[str, Any]


@frozen(kw_only=True)
class Launched:
    """
    Remember a machine that was just rented, because lists may lag.

    Args:
        pool_id: Its pool.
        token: The request that it was rented for.
        at: When, on the monotonic clock.
        row: What a list would say of it.
        on_demand: What it costs on demand, in USD per hour.
        listed: Whether a list has had it; if another has it no more, it is gone.
    """

    pool_id: str
    token: str
    at: float
    row: Row
    on_demand: float | None
    listed: bool = False

    @property
    def fresh(self) -> bool:
        """Return whether lists may not have it yet."""
        return not self.listed and time.monotonic() - self.at < LAG


@frozen(kw_only=True)
class DueKey:
    """
    Remember a key that is to be attached to a machine.

    Args:
        pool_id: The machine's pool.
        public: The key.
        tried: How often that failed.
    """

    pool_id: str
    public: str
    tried: int = 0


@define(eq=False)
class _Ends:
    """Hold which machines the next round ends, and that round."""

    waiting: set[str] = field(factory=set)
    round: asyncio.Task[set[str]] | None = None
    lock: asyncio.Lock = field(factory=asyncio.Lock)


class Account:
    """
    Use an account.

    Args:
        key: Its key; None for the one that Vast's own tools would use.
    """

    def __init__(self, key: str | None) -> None:
        self._key = key
        self.lists_hold = LISTS_HOLD
        self._ends: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Ends] = weakref.WeakKeyDictionary()
        self._shared: Shared | None = None
        self._ordered: set[str] = set()
        self._refused: dict[str, SkywardError] = {}
        self.launched: dict[str, Launched] = {}
        self.due_keys: dict[str, DueKey] = {}
        """The keys that are not attached yet, by machine."""
        self.tokens: set[str] = set()
        self.asked_at = float("-inf")
        """When a machine was last asked for, on the monotonic clock."""

    @functools.cached_property
    def api(self) -> Api:
        """Return what makes the calls."""
        return Api(service(), lambda _stale: Login.bearer(self.key))

    @property
    def key(self) -> str:
        """
        Return the account's key.

        Raises:
            NoCredentialsError: If there is none.
        """
        return find_key(self._key, os.environ)

    @functools.cached_property
    def _pins(self) -> Path:
        directory = tempfile.mkdtemp(prefix="skyward-vastai-")
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        return Path(directory)

    def known_hosts(self, instance: str) -> str:
        """
        Name the file in which a machine's host key is remembered from the first contact on.

        Addresses and ports are handed on from one container to the next, so that every machine has a file of its own.

        Args:
            instance: The machine's id.
        """
        return str(self._pins / instance)

    def shared(self) -> Shared:
        """Return what all pools of the account know together."""
        # Kept, because it lasts as long as something refers to it.
        self._shared = Shared.of(f"{self.api.service.base_url} {self.key}")
        return self._shared

    async def rows(self, within: float | None = None) -> list[Row]:
        """
        List all machines of the account, whosever they are.

        Args:
            within: How many seconds ago the list may have been begun, for another pool of the account; None for the
                usual.

        Raises:
            SkywardError: If there is no list: that is not an empty one.
        """
        within = self.lists_hold if within is None else within
        shared = self.shared()
        # A list from before would not have what was just rented, perhaps without an answer.
        since_asked = time.monotonic() - self.asked_at
        rows = await shared.ask("instances", within if since_asked > within else 0.0, self._rows)
        for row in rows:
            if known := self.launched.get(str(row["id"])):
                self.launched[str(row["id"])] = evolve(known, listed=True)
        return rows

    async def end(self, ids: Sequence[str]) -> None:
        """
        End machines, and return when no list has them any more.

        Args:
            ids: Which; one that is gone already is no error.

        Raises:
            ProvisionError: If one may still be billed.
        """
        await end_for_good(
            ids,
            end=self._why,
            left=self._left,
            provider="vastai",
            hint="Type: vastai destroy instance {ids}, one by one, or use Vast.ai's console.",
        )
        for each in ids:
            self.launched.pop(each, None)
            self.due_keys.pop(each, None)
            self._ordered.discard(each)
            self._refused.pop(each, None)

    async def _rows(self) -> list[Row]:
        found: dict[int, Row] = {}
        after = None
        for _ in range(PAGES):
            params: dict[str, str | int] = {"limit": 25, **({"after_token": after} if after else {})}
            page, after = await self.api.get("/api/v1/instances/", params=params, lane="list", read=_page)
            found.update((whole(row, "id"), row) for row in page)
            if after is None:
                break
        return list(found.values())

    async def _why(self, instance: str) -> None:
        """Tell why the last order to end a machine was refused; the order itself goes out with those of others."""
        error = self._refused.pop(instance, None)
        if error is not None:
            raise error

    def _left(self, ids: Sequence[str]) -> Awaitable[set[str]]:
        """Order the end of machines together with all that others end in this moment, and return what is left."""
        ends = self._ends.setdefault(asyncio.get_running_loop(), _Ends())
        ends.waiting.update(ids)
        if ends.round is None:
            ends.round = asyncio.create_task(self._round(ends))
            ends.round.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return asyncio.shield(ends.round)

    async def _round(self, ends: _Ends) -> set[str]:
        await asyncio.sleep(TOGETHER)
        async with ends.lock:
            # Calls that come from here on have to wait for the next one.
            ids, ends.waiting, ends.round = sorted(ends.waiting), set(), None
            again = [each for each in ids if each in self._ordered]
            new = [each for each in ids if each not in self._ordered]
            self._ordered.update(ids)
            if len(new) > 1:
                await self._order(new, self.api.delete("/api/v0/instances/", **_many(new)))
            else:
                again += new
            # What did not go with the others goes by itself.
            for each in again:
                await self._order([each], self.api.delete(f"/api/v0/instances/{each}/", **_one(each)))
            there = {str(row["id"]) for row in await self.rows(within=0.0)}
            # A list that lags does not have all, so that a refusal counts as well.
            return {each for each in ids if each in there or each in self._refused}

    async def _order(self, ids: Sequence[str], order: Awaitable[Any]) -> None:
        """Await an order; whether it was carried out is for the list to say."""
        try:
            await order
        except SkywardError as error:
            _log.info("destroy.refused ids=%s: %s", ",".join(ids), error)
            self._refused.update(dict.fromkeys(ids, error))


def _one(instance: str) -> dict[str, Any]:
    return {"json": {}, "lane": "destroy", "subject": instance, "also": (404,)}


def _many(ids: Sequence[str]) -> dict[str, Any]:
    return {"json": {"instance_ids": [int(each) for each in ids]}, "lane": "destroy", "subject": ", ".join(ids)}


def _page(answer: object) -> tuple[list[Row], str | None]:
    """Read a page of the list, and what leads to the next."""
    try:
        rows = identified(listed(answer, "instances"), lambda row: whole(row, "id"), provider="vastai")
    except ValueError as error:
        raise Misread(str(error)) from error
    after = optional(answer, "next_token", text)
    if after is not None and not rows:
        raise Misread("an empty page leads to another")
    return rows, after
