"""End the machines of a pool whose client is dead, until the provider's lists have none any more."""

from __future__ import annotations

import asyncio
import os
import time

from skyward.engine.journal import Journal, journal_path
from skyward.engine.provider_handle import ProviderHandle
from skyward.errors import SkywardError
from skyward.plan.guarding import Duty, existing, over, to_end

HOOK_TIMEOUT = 120.0
"""Seconds that a hook of the provider may take."""

ENDING_TIMEOUT = 600.0
"""Seconds that a provider may take to confirm that machines are gone."""


class Ending:
    """
    End what is left of one pool; lives in the guardian.

    Args:
        handle: The provider.
        duty: What there is to end.
    """

    def __init__(self, handle: ProviderHandle, duty: Duty) -> None:
        self._handle = handle
        self._duty = duty
        self._ended: frozenset[str] = frozenset()
        self._left: tuple[str, ...] = tuple(sorted(duty.machines))
        self._empty = 0
        self._why = ""
        self.failures = 0

    async def attempt(self, since: float) -> bool:
        """
        Look once, and end what is there.

        Args:
            since: Seconds since the client died.

        Returns:
            Whether there is nothing left for certain.
        """
        try:
            listed = await self._listed()
        except Exception as error:
            # What the client knew of can be ended without a list.
            await self._end(to_end(self._duty, frozenset(), self._ended))
            self._left = to_end(self._duty, frozenset(), self._ended)
            return self._failed(error)
        before, self._left = self._ended, to_end(self._duty, listed, self._ended)
        if trouble := await self._end(self._left):
            return self._failed(trouble)
        self._empty = 0 if listed else self._empty + 1
        # What is listed although its end was confirmed is looked at less and less often.
        self.failures = self.failures + 1 if self._left and not listed - before else 0
        return over(self._duty, empty=self._empty, since=since)

    async def settle(self) -> None:
        """Take away what the machines shared, and write into the journal that they are gone."""
        for cluster, infra in self._duty.shared:
            try:
                await self._handle.call("skyward_release", cluster=cluster, infra=infra, timeout=ENDING_TIMEOUT)
            except SkywardError as error:
                self.note(f"something that its machines shared may still be there: {error}")
        journal = Journal.open()
        journal.settled(self._duty.pool_id)
        journal.close()
        self.note("all its machines are gone")

    def give_up(self) -> None:
        """Say what is left, and what to do about it."""
        self.note(
            f"GAVE UP. Still there and billed: {', '.join(self._left) or 'unknown'}. {self._why}"
            f" To end them, type: sky down {self._duty.pool_id}"
        )

    def note(self, text: str) -> None:
        """
        Write a line into the log of guardians, `guardian.log` beside the journal.

        Args:
            text: What happened.
        """
        path = journal_path().with_name("guardian.log")
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        line = f"{stamp} {self._handle.name} pool {self._duty.pool_id}: {text}\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            # Whoever cannot write can still end machines.
            return
        with os.fdopen(descriptor, "a", encoding="utf-8") as log:
            log.write(line)

    async def _listed(self) -> frozenset[str]:
        """List what exists; where the pool's own list fails, that of all machines of ours tells as well."""
        found: frozenset[str] = frozenset()
        try:
            for cluster, infra in self._duty.regions:
                rows = await self._handle.call("skyward_instances", cluster=cluster, infra=infra, timeout=HOOK_TIMEOUT)
                found |= existing(rows or (), self._duty.pool_id)
        except SkywardError:
            if not self._handle.implements("skyward_owned"):
                raise
            rows = await self._handle.call("skyward_owned", timeout=HOOK_TIMEOUT)
            found = existing(rows or (), self._duty.pool_id, tagged=True)
        return found

    async def _end(self, ids: tuple[str, ...]) -> BaseException | None:
        """End machines, and return why that failed where it did."""
        if not ids:
            return None
        # Nobody knows which region they are in; one that is elsewhere is no error.
        calls = [
            self._handle.call("skyward_terminate", cluster=cluster, infra=infra, ids=ids, timeout=ENDING_TIMEOUT)
            for cluster, infra in self._duty.regions
        ]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        for answer in answers:
            if answer is not None:
                return answer
        if new := sorted(set(ids) - self._ended):
            self.note(f"ended {', '.join(new)}")
        self._ended |= set(ids)
        return None

    def _failed(self, error: BaseException) -> bool:
        self.failures += 1
        self._empty = 0
        if str(error) != self._why:
            self._why = str(error)
            self.note(f"its machines could not be ended, which is tried again: {error}")
        return False
