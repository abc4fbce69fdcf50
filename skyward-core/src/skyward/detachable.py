"""
A pool that is left without being ended: `detach`, and `calls` and `results` of one that is attached.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skyward.errors import PoolClosedError

if TYPE_CHECKING:
    from skyward.engine.calls.inherited_calls import AttachedCall
    from skyward.engine.pool.opening import OpenPool


class Detachable:
    """Leave a pool, and go on with one; the part of a pool that does."""

    _open: OpenPool | None
    _running: Any

    def detach(self, *, name: str | None = None, lease: float | None = None, idle: float | None = None) -> str:
        """
        Leave the machines and all calls under way, and close the pool; `sky.attach` goes on with them.

        Calls that wait for a node are sent there first.
        What has ended by then is this program's: its futures have the results.
        The others raise `PoolClosedError` here, and have their results where the pool is attached.

        Args:
            name: What it is attached by, besides its id; None is the pool's own name.
            lease: Seconds after which its machines end by themselves, and are billed no longer, unless it is attached;
                None is `ttl`, or what is left of the lease of a pool that is attached, if that is more. `budget` and
                `timeout` may make it less.
            idle: Seconds after which a machine ends that has nothing to do any more, with the results that are on it;
                for calls that leave what they give elsewhere. None has it wait until the lease ends.

        Returns:
            The pool's id.

        Raises:
            ConfigError: If the pool would not end by itself, or could not be found again.
            UsageError: If calls need this program while they run, as streams and maps do.
            PoolClosedError: If the pool is not open.
        """
        from skyward.engine.pool.detaching import detach_pool
        from skyward.engine.pool.opening import close_pool

        # Raises if it is not open.
        _ = self._running
        opened = self._open
        if opened is None:
            raise PoolClosedError("The pool was closed by another thread.")
        pool_id = detach_pool(opened.running, name, lease, idle)
        try:
            close_pool(opened, None)
        finally:
            self._open = None
        return pool_id

    def calls(self) -> tuple[AttachedCall, ...]:
        """
        List the calls that were under way when the pool was detached, in the order in which they were made.

        Each has `id`, `function`, `node`, `done`, `result()` and a `future`; a pool that was not attached has none.
        """
        calls: tuple[AttachedCall, ...] = self._running.inherited.all
        return calls

    def results(self, *, return_exceptions: bool = False) -> Iterator[Any]:
        """
        Iterate over the results of these calls, in the order in which they were made; waits for each.

        Args:
            return_exceptions: Whether what is raised takes its place among the results instead of being raised.

        Raises:
            NodeLostError: If a call's node is lost, or has nothing of it.
            Exception: What a function raised.
        """
        for call in self.calls():
            error = call.future.exception() if return_exceptions else None
            yield call.result() if error is None else error
