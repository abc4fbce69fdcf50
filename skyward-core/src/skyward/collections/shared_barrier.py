"""`sky.barrier`: tasks of a pool wait for each other, and none waits for a dead one."""

from __future__ import annotations

import threading
import uuid
from typing import NamedTuple

from skyward.collections.holder import Holder
from skyward.collections.holder_lease import LEASE_KEY
from skyward.collections.in_thread import GivenUp, in_waiting_thread
from skyward.collections.shared_queue import until
from skyward.errors import BarrierBrokenError, SkywardError, UsageError

__all__ = ["BarrierRounds", "SharedBarrier"]

_GO = b"go"
_WAIT = b"wait"


class Arrival(NamedTuple):
    """What an arrival at a barrier found: whether all are there, how many were before, and the round."""

    complete: bool
    before: int
    number: int


class BarrierRounds:
    """
    Arrive at one barrier, and look what becomes of a round.

    Args:
        name: The barrier's.
        holder: Takes part in it; a round of which one is gone is broken.
    """

    def __init__(self, name: str, holder: Holder) -> None:
        self._name = name
        self._holder = holder
        self._store = holder.store
        self._key = f"sky:barrier:{name}"
        self._members = f"sky:barrier-members:{name}"
        self._tokens = f"sky:barrier-tokens:{name}\0"
        self._broken = f"sky:barrier-broken:{name}\0"

    def arrive(self, n: int) -> Arrival:
        """
        Take part in the present round.

        Raises:
            UsageError: If others wait for another number of participants.
        """
        lease = self._holder.lease
        lease.keep()
        participant = uuid.uuid4().hex
        what, index, round_ = self._store.run_once(
            "arrive",
            (self._key, self._members),
            (n, participant, self._holder.name, lease.milliseconds, LEASE_KEY, self._tokens),
        )
        if what == b"other":
            raise UsageError(
                f"The barrier {self._name!r} is for {index} participants, who wait there, and not for {n}.",
                hint="Use one number in all tasks, or another name.",
            )
        return Arrival(what == _GO, index, round_)

    def outcome(self, round_: int, reason: str = "") -> bytes | None:
        """
        Return `go` for a round that is complete, None for one that goes on, or why it is broken.

        Args:
            round_: Its number.
            reason: Why it is to be broken, if it goes on.
        """
        found: bytes = self._store.run(
            "look",
            (self._key, self._members, f"{self._broken}{round_}"),
            (round_, reason, LEASE_KEY, self._tokens),
        )
        return None if found == _WAIT else found

    def wait(self, round_: int, seconds: float) -> None:
        """Wait until a round may be over."""
        self._store.wait(f"{self._tokens}{round_}", seconds)


class SharedBarrier:
    """
    Let `n` participants go on when all have arrived; then it can be used again.

    A participant whose time is over, that is interrupted or cancelled, or whose process dies, breaks the round for all
    that wait in it: they raise `BarrierBrokenError` rather than hang. The next round begins afresh.

    `wait_async` is the twin for coroutines.

    Args:
        name: The barrier's.
        n: How many participants there are.
    """

    def __init__(self, name: str, n: int, rounds: BarrierRounds) -> None:
        self.name = name
        self.n = n
        self._rounds = rounds

    def __repr__(self) -> str:
        return f"sky.barrier({self.name!r}, {self.n})"

    def wait(self, timeout: float | None = None) -> int:
        """
        Wait until all participants have arrived.

        Args:
            timeout: For how long, in seconds; None for ever.

        Returns:
            How many had arrived before, from 0 to `n - 1`.

        Raises:
            BarrierBrokenError: If a participant died, gave up or had no time left.
            UsageError: If others wait for another number of participants.
        """
        try:
            return self._wait(timeout, threading.Event())
        except KeyboardInterrupt as interrupt:
            # Where our code waited when the user pressed Ctrl-C says nothing.
            raise interrupt.with_traceback(None)  # noqa: B904  # it is that very interrupt

    async def wait_async(self, timeout: float | None = None) -> int:
        """Do as `wait`; cancelled, it breaks the round."""
        return await in_waiting_thread(lambda given_up: self._wait(timeout, given_up))

    def _wait(self, timeout: float | None, given_up: threading.Event) -> int:
        arrival = self._rounds.arrive(self.n)
        if arrival.complete:
            return arrival.before
        try:
            outcome = until(
                lambda: self._rounds.outcome(arrival.number),
                lambda seconds: self._rounds.wait(arrival.number, seconds),
                timeout,
                given_up,
                TimeoutError,
            )
        except TimeoutError:
            outcome = self._rounds.outcome(arrival.number, f"a participant waited for {timeout:g} s")
        except GivenUp:
            if self._rounds.outcome(arrival.number, "a participant was cancelled") == _GO:
                return arrival.before
            raise
        except SkywardError:
            raise
        except BaseException:
            self._rounds.outcome(arrival.number, "a participant was interrupted")
            raise
        if outcome == _GO:
            return arrival.before
        assert outcome is not None
        raise BarrierBrokenError(
            f"The barrier {self.name!r} for {self.n} participants is broken: {outcome.decode()}.",
            hint="All that waited there raise this; the next round begins afresh.",
        )
