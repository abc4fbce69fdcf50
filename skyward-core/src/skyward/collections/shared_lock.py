"""`sky.lock`: a mutual exclusion of all tasks of a pool, which a dead holder does not keep."""

from __future__ import annotations

import threading
import uuid
from types import TracebackType
from typing import NamedTuple, Self

from skyward.collections.holder import Holder
from skyward.collections.holder_lease import LEASE_KEY
from skyward.collections.in_thread import in_thread, in_waiting_thread
from skyward.collections.shared_queue import until
from skyward.errors import LockNotOwnedError, LockTimeoutError, UsageError

__all__ = ["HeldLock", "SharedLock"]


class Grip(NamedTuple):
    """One acquisition of a lock."""

    consumer: int
    id: str
    token: int


class HeldLock:
    """
    Acquire and release one lock for this process.

    Args:
        name: The lock's.
        holder: Acquires it.
    """

    def __init__(self, name: str, holder: Holder) -> None:
        self.holder = holder
        self._name = name
        self._store = holder.store
        self._key = f"sky:lock:{name}"
        self._fence = f"sky:lock-fence:{name}"
        self._signals = (f"sky:lock-waiting:{name}", f"sky:lock-released:{name}")
        self.grip: Grip | None = None

    def refuse_again(self, consumer: int) -> None:
        """
        Refuse a second acquisition by what has the lock, which would wait for itself.

        Raises:
            UsageError: If it has the lock.
        """
        grip = self.grip
        if grip is None or grip.consumer != consumer:
            return
        if self._store.call("HGET", self._key, "grip") == grip.id.encode():
            raise UsageError(
                f"The lock {self._name!r} is held already by this thread or coroutine, which would wait for itself.",
                hint="Release it first; it is not reentrant.",
            )
        # It expired while this process was stopped, and another has it.
        self.grip = None

    def try_to_acquire(self, consumer: int, grip: str, *, waits: bool) -> Grip | None:
        """Acquire the lock where it is free."""
        self.holder.lease.keep()
        token = self._store.run(
            "acquire",
            (self._key, self._fence, *self._signals),
            (self.holder.name, grip, self.holder.lease.milliseconds, LEASE_KEY, int(waits)),
        )
        if not token:
            return None
        self.grip = Grip(consumer, grip, int(token))
        return self.grip

    def release(self, consumer: int) -> None:
        """
        Release the lock.

        Raises:
            LockNotOwnedError: If this thread or coroutine does not have it, or not any more.
        """
        grip = self.grip
        if grip is None or grip.consumer != consumer:
            raise LockNotOwnedError(
                f"The lock {self._name!r} is not held by this thread or coroutine.",
                hint="The one that acquired it releases it, once.",
            )
        self.grip = None
        if not self.let(grip):
            raise LockNotOwnedError(
                f"The lock {self._name!r} expired before it was released: this process was stopped, or had no link to"
                " the store, for longer than its lease. Another may have had the lock meanwhile.",
                hint="Pass the lock's token to what it protects, and have lower ones refused there.",
            )

    def let(self, grip: Grip) -> bool:
        """Release an acquisition; False if it is no longer one."""
        return bool(self._store.run_once("release", (self._key, *self._signals), (grip.id,)))

    def drop(self, grip: Grip) -> None:
        """Release an acquisition that no caller received."""
        if self.grip == grip:
            self.grip = None
        self.let(grip)

    def wait(self, seconds: float) -> None:
        """Wait until the lock may be free."""
        self._store.wait(self._signals[1], seconds)


class SharedLock:
    """
    Exclude all other tasks, threads and coroutines from what one does.

    The lock belongs to the thread or coroutine that acquired it, which releases it and cannot acquire it twice.
    It expires when the process of its holder has been dead, stopped or without a link to the store for 15 s.
    Since a process that goes on after that does not know it, `token` is a number that is higher for each acquisition:
    pass it to what the lock protects, and have lower ones refused there.

    >>> with sky.lock("checkpoint") as lock:  # doctest: +SKIP
    ...     save(fence=lock.token)

    `acquire_async` and `release_async` are the twins for coroutines, and `async with` works.

    Args:
        name: The lock's.
        timeout: For how long to wait for it, in seconds; None for ever.
    """

    def __init__(self, name: str, timeout: float | None, held: HeldLock) -> None:
        self.name = name
        self.timeout = timeout
        self._held = held

    def __repr__(self) -> str:
        return f"sky.lock({self.name!r})"

    @property
    def token(self) -> int | None:
        """Return the number of this acquisition, and None where the lock is not held by this process."""
        grip = self._held.grip
        return grip.token if grip else None

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:  # noqa: FBT001, FBT002  # as in threading
        """
        Acquire the lock.

        Args:
            blocking: Whether to wait for it.
            timeout: For how long, in seconds; None for the lock's own timeout.

        Returns:
            Whether it is acquired, which can be False only where it is not waited for.

        Raises:
            LockTimeoutError: If another has it for all this time.
            UsageError: If this thread or coroutine has it already.
        """
        consumer = self._held.holder.consumer()
        try:
            return self._acquire(consumer, threading.Event(), blocking=blocking, timeout=timeout) is not None
        except KeyboardInterrupt as interrupt:
            # Where our code waited when the user pressed Ctrl-C says nothing.
            raise interrupt.with_traceback(None)  # noqa: B904  # it is that very interrupt

    def release(self) -> None:
        """
        Release the lock.

        Raises:
            LockNotOwnedError: If this thread or coroutine does not have it, or not any more.
        """
        self._held.release(self._held.holder.consumer())

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()

    async def acquire_async(self, blocking: bool = True, timeout: float | None = None) -> bool:  # noqa: FBT001, FBT002
        """Do as `acquire`; cancelled, it acquires nothing."""
        consumer = self._held.holder.consumer()

        def undo(grip: Grip | None) -> None:
            if grip is not None:
                self._held.drop(grip)

        grip = await in_waiting_thread(
            lambda given_up: self._acquire(consumer, given_up, blocking=blocking, timeout=timeout), undo
        )
        return grip is not None

    async def release_async(self) -> None:
        """Do as `release`."""
        await in_thread(self._held.release, self._held.holder.consumer())

    async def __aenter__(self) -> Self:
        await self.acquire_async()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.release_async()

    def _acquire(
        self, consumer: int, given_up: threading.Event, *, blocking: bool, timeout: float | None
    ) -> Grip | None:
        self._held.refuse_again(consumer)
        # One name for all attempts, so that an answer that was lost is found again.
        grip = uuid.uuid4().hex
        if not blocking:
            return self._held.try_to_acquire(consumer, grip, waits=False)
        limit = self.timeout if timeout is None else timeout
        found: Grip = until(
            lambda: self._held.try_to_acquire(consumer, grip, waits=True),
            self._held.wait,
            limit,
            given_up,
            lambda: LockTimeoutError(
                f"The lock {self.name!r} was not free within {limit:g} s.",
                timeout=limit,
                hint="Raise its timeout, or hold it for a shorter time.",
            ),
        )
        return found
