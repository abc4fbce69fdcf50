"""End the machines of a pool whose client is dead, until the provider's lists have none any more."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from functools import partial

from skyward.engine.guardian.guardian_log import GuardianLog
from skyward.engine.guardian.journal import Journal
from skyward.engine.instances.provider_handle import ProviderHandle
from skyward.errors import SkywardError
from skyward.plan.instances.guardian_duty import Duty, existing, over, to_end

HOOK_TIMEOUT = 120.0
"""Seconds that a hook of the provider may take."""

ENDING_TIMEOUT = 600.0
"""Seconds that a provider may take to confirm that machines are gone."""

# What a provider's code may raise; none of it is the guardian's own end.
_ANYTHING = (Exception, KeyboardInterrupt, SystemExit, asyncio.CancelledError)


class GuardianTermination:
    """
    End what is left of one pool; lives in the guardian.

    Nothing that it does besides, such as to write its log, keeps it from that.

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
        self._log = GuardianLog(f"{handle.name} pool {duty.pool_id}")
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
            return await self._attempt(since)
        except _ANYTHING as error:
            _raise_if_ours(error)
            return self._failed(error)

    async def _attempt(self, since: float) -> bool:
        try:
            listed = await self._listed()
        except _ANYTHING as error:
            _raise_if_ours(error)
            # What the client knew of can be ended without a list.
            await self._end(to_end(self._duty, frozenset(), self._ended))
            self._left = to_end(self._duty, frozenset(), self._ended)
            return self._failed(error)
        before, self._left = self._ended, to_end(self._duty, listed, self._ended)
        if trouble := await self._end(self._left):
            return self._failed(trouble)
        self._empty = 0 if listed - self._duty.spared else self._empty + 1
        # What is listed although its end was confirmed is looked at less and less often.
        self.failures = self.failures + 1 if self._left and not listed - before else 0
        return over(self._duty, empty=self._empty, since=since)

    async def settle(self) -> None:
        """Take away what the machines shared, and write into the journal that they are gone."""
        for cluster, infra in self._duty.shared:
            try:
                await self._handle.call("skyward_release", cluster=cluster, infra=infra, timeout=ENDING_TIMEOUT)
            except _ANYTHING as error:
                _raise_if_ours(error)
                self.note(f"something that its machines shared may still be there: {_words(error)}")
        self.note("all its machines are gone")
        try:
            journal = Journal.open()
            journal.settled(self._duty.pool_id)
            journal.close()
        except (OSError, RuntimeError) as error:
            self.note(f"that could not be written into the journal: {_words(error)}")

    def give_up(self) -> None:
        """Log what is left, and what to do about it."""
        self.note(
            f"GAVE UP. Still there and billed: {', '.join(self._left) or 'unknown'}. {self._why}"
            f" To end them, type: sky down {self._duty.pool_id}"
        )

    def note(self, text: str) -> None:
        """
        Write a line into the log of guardians, `guardian.log` beside the journal; it never raises.

        Args:
            text: What happened.
        """
        self._log.note(text)

    def close(self) -> None:
        """Wait for the log, but not for long."""
        self._log.close()

    async def _listed(self) -> frozenset[str]:
        """List what exists; where the pool's own list fails, that of all machines of ours serves as well."""
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
        # Which region they are in is unknown; one that is elsewhere is no error.
        terminate = partial(self._handle.call, "skyward_terminate", ids=ids, timeout=ENDING_TIMEOUT)
        calls = [_tried(terminate(cluster=cluster, infra=infra)) for cluster, infra in self._duty.regions]
        answers = await asyncio.gather(*calls)
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
        if (why := _words(error)) != self._why:
            self._why = why
            self.note(f"its machines could not be ended, which is tried again: {why}")
        return False


async def _tried(call: Awaitable[object]) -> BaseException | None:
    """Make a call, and return what it raises: in a task of its own, an exit would end the whole loop."""
    try:
        await call
    except _ANYTHING as error:
        _raise_if_ours(error)
        return error
    return None


def _raise_if_ours(error: BaseException) -> None:
    """Raise the cancellation that was meant for this task, and not one that a provider let out."""
    task = asyncio.current_task()
    if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
        raise error


def _words(error: BaseException) -> str:
    try:
        return str(error) or type(error).__name__
    except Exception:  # broad, because a provider's `__str__` may raise anything
        return type(error).__name__
