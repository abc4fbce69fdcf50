"""
The backend that joblib sees: an open pool, and the batches of one `Parallel` on it.

joblib calls a backend from the thread that called `Parallel`, and from whichever thread says that a batch has ended.
That is never the engine's: what a batch returns is unpickled, and the next one pickled, in a thread of the `Parallel`.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeAlias

from joblib.parallel import (
    AutoBatchingMixin,
    FallbackToBackend,
    LokyBackend,
    ParallelBackendBase,
    SequentialBackend,
    ThreadingBackend,
)

import skyward as sky
from skyward_sklearn.arrays import prepared
from skyward_sklearn.running import Runners, Start, Task

__all__ = ["OPEN", "PoolBackend", "slots_of"]

OPEN: list[sky.Compute] = []
"""The pools that joblib may use. joblib asks for a backend by its name alone, from any thread."""

_BROUGHT_BY = {"joblib": "joblib", **dict.fromkeys(("sklearn", "numpy", "scipy", "threadpoolctl"), "sklearn")}
"""Packages that tasks may miss on a node, and the plugin that brings them."""

# joblib doubles, until a batch takes up to twice 0.2 s. One of less than 10 ms is below that with 32 times the tasks,
# and most of its time is its way. The last tasks are dealt out in small batches all the same.
_FASTER = 16

_STARTS = ("initializer", "initargs")
"""Settings that say how a worker process begins."""

_MEANINGLESS = frozenset(
    {
        *("backend", "context", "idle_worker_timeout", "max_nbytes", "mmap_mode", "prefer", "require", "temp_folder"),
        "verbose",
    }
)
"""Settings of joblib's own processes that mean nothing here; joblib gives most of them in every call."""

_log = logging.getLogger(__name__)


def slots_of(pool: sky.Compute) -> int:
    """
    Count the calls that a pool runs at once.

    Args:
        pool: The pool.

    Raises:
        PoolClosedError: If it is not open.
    """
    slots: int | None = pool.snapshot().get("slots")
    if slots is None:
        raise sky.PoolClosedError(
            f"joblib was to run on the pool {pool.name!r}, which is not open.",
            pool=pool.name,
            hint="Call Parallel, or what uses it, inside the pool's with block.",
        )
    return slots


def _tasks_at_once(pool: sky.Compute, n_jobs: int | None) -> int:
    """Count the tasks that run at once: the pool's slots, or fewer if fewer were asked for."""
    if n_jobs == 0:
        raise ValueError("n_jobs == 0 in Parallel has no meaning")
    slots = max(1, slots_of(pool))
    if n_jobs is None:
        return slots
    return max(slots + 1 + n_jobs, 1) if n_jobs < 0 else min(n_jobs, slots)


class PoolBackend(ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """
    Be joblib's backend; each `Parallel` gets one of its own from it, so that none sees what another counts or aborts.

    Args:
        find: Returns the pool that tasks run on, when joblib asks; None if there is none. Left out, it is the one that
            was opened last.
        settings: As joblib gives them.

    Raises:
        TypeError: If a setting is none that joblib has.
    """

    supports_inner_max_num_threads = True
    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, find: Callable[[], sky.Compute | None] | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        _check(self.backend_kwargs)
        self._find = _opened_last if find is None else find
        self.closed = False

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Count the tasks that run at once."""
        found = self._found()
        return _tasks_at_once(found, n_jobs) if isinstance(found, sky.Compute) else int(found.effective_n_jobs(n_jobs))

    def configure(self, n_jobs: int = 1, **settings: Any) -> int:
        """Raise what leaves the `Parallel` to a backend of its own: joblib asks that one next."""
        found = self._found()
        if isinstance(found, sky.Compute):
            found = ParallelOnPool(
                found,
                nesting_level=self.nesting_level,
                inner_max_num_threads=self.inner_max_num_threads,
                **self.backend_kwargs,
            )
        raise FallbackToBackend(found)

    def _found(self) -> Any:
        """Return the pool, or another backend where there is none because there need not be one."""
        if self.closed:
            return LokyBackend(nesting_level=self.nesting_level)
        if (pool := self._find()) is not None:
            return pool
        if self.nesting_level:
            inner = ThreadingBackend if self.nesting_level == 1 else SequentialBackend
            return inner(nesting_level=self.nesting_level)
        raise sky.NoPoolError(
            "joblib was asked for the backend 'skyward', and no pool is open for it.",
            hint="Open one: with sky.Compute(plugins=[sky.plugins.joblib()]): ..., "
            "or put `with sky.integrations.joblib_backend(pool):` around the call.",
        )


def _opened_last() -> sky.Compute | None:
    """Return the pool that was opened last; None where none is open."""
    return OPEN[-1] if OPEN else None


def _check(settings: Iterable[str]) -> None:
    """Refuse settings that joblib does not have: its own processes would too."""
    for name in settings:
        if name not in _MEANINGLESS and name not in _STARTS:
            raise TypeError(f"joblib's backend 'skyward' has no setting {name!r}; it has {' and '.join(_STARTS)}.")


class _Batch:
    """What joblib submitted, and what it wants to be called with when that has ended."""

    __slots__ = ("callback", "future", "tasks")

    def __init__(self, tasks: list[Task], callback: Callable[[Any], None]) -> None:
        self.tasks = tasks
        self.callback = callback
        self.future: Future[Any] | None = None


_Ended: TypeAlias = "SimpleQueue[_Batch | None]"


class ParallelOnPool(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]  # joblib has no types
    """
    Run the batches of one `Parallel`.

    Args:
        pool: Where they run.
        settings: As joblib gives them.
    """

    supports_inner_max_num_threads = True
    supports_retrieve_callback = True
    default_n_jobs = -1

    def __init__(self, pool: sky.Compute, **settings: Any) -> None:
        super().__init__(**settings)
        self._pool = pool
        self._lock = threading.Lock()
        self._limit: int | None = None
        self._sent: set[_Batch] = set()
        self._held: deque[_Batch] = deque()
        self._ended: _Ended | None = None
        self._start = Start()
        self._runners = Runners(self.nesting_level)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **settings: Any) -> int:
        """Begin a `Parallel`; one that is to run a single task at a time by its own words runs here."""
        if n_jobs == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        self.parallel = parallel
        jobs = self.effective_n_jobs(n_jobs)
        given = {**self.backend_kwargs, **settings}
        _check(given)
        begins = {name: given[name] for name in _STARTS if given.get(name) is not None}
        self._start = Start(**begins, threads=self.inner_max_num_threads)
        self._runners = Runners(self.nesting_level, self._start)
        with self._lock:
            if self._ended is None:
                self._ended = SimpleQueue()
                threading.Thread(target=self._tell, args=(self._ended,), name="skyward-joblib", daemon=True).start()
        return jobs

    def effective_n_jobs(self, n_jobs: int | None) -> int:
        """Count the tasks that run at once; at least 2, because joblib would run them here if there was one slot."""
        if n_jobs == 1:
            return 1
        wanted = _tasks_at_once(self._pool, n_jobs)
        self._limit = wanted if wanted < slots_of(self._pool) else None
        return max(2, wanted)

    def submit(self, func: Any, callback: Callable[[Any], None]) -> _Batch:
        """
        Send a batch, or hold it back while as many run as were asked for.

        What goes wrong here is the batch's failure: joblib also submits from callbacks, where it would be lost.
        """
        batch = _Batch(func.items, callback)
        with self._lock:
            ended = self._ended
            # joblib may be about to send one more when it has given up already.
            if ended is None:
                return batch
            if self._limit is not None and len(self._sent) >= self._limit:
                self._held.append(batch)
                return batch
            self._sent.add(batch)
        self._send(batch, ended)
        return batch

    def compute_batch_size(self) -> int:
        """Count the tasks of the next batch: as joblib does, but far more while a batch takes next to no time."""
        brief = 0 < self._smoothed_batch_duration < self.MIN_IDEAL_BATCH_DURATION / 20
        size: int = super().compute_batch_size()
        if brief:
            size *= _FASTER
            self._effective_batch_size = size
        return size

    def retrieve_result_callback(self, out: _Batch) -> Any:
        """Return what the tasks of a batch returned, or raise what one of them raised."""
        assert out.future is not None
        try:
            return out.future.result()
        except (sky.SerializationError, ModuleNotFoundError) as error:
            if (package := _missing(error)) is None:
                raise
            plugin = _BROUGHT_BY[package]
            raise sky.PluginError(
                f"The nodes of the pool {self._pool.name!r} have no {package}.",
                plugin=plugin,
                pool=self._pool.name,
                hint=f"Open the pool with plugins=[sky.plugins.{plugin}()].",
            ) from error

    def abort_everything(self, ensure_ready: bool = True) -> None:  # noqa: FBT001, FBT002  # joblib's signature
        """Stop what runs on the nodes, and forget what has not begun."""
        with self._lock:
            self._held.clear()
            sent, self._sent = self._sent, set()
        for batch in sent:
            if batch.future is not None:
                batch.future.cancel()

    def terminate(self) -> None:
        """End the thread of this `Parallel`; the pool stays."""
        with self._lock:
            ended, self._ended = self._ended, None
            # Of a function that captures what can change, the next call takes what it is then.
            self._runners = Runners(self.nesting_level, self._start)
        if ended is not None:
            ended.put(None)
        self.reset_batch_stats()

    apply_async = submit

    def _send(self, batch: _Batch, ended: _Ended) -> None:
        try:
            batch.future = self._pool.run_async(self._runners.call(prepared(batch.tasks)))
        except Exception as error:
            batch.future = Future()
            batch.future.set_exception(error)
        # Called by the engine, which has no time for more.
        batch.future.add_done_callback(lambda _: ended.put(batch))
        with self._lock:
            aborted = batch not in self._sent
        if aborted:
            batch.future.cancel()

    def _tell(self, ended: _Ended) -> None:
        """Report batches that have ended to joblib, and send what they held back; a thread of its own does this."""
        while (batch := ended.get()) is not None:
            with self._lock:
                self._sent.discard(batch)
                following = self._held.popleft() if self._held else None
                if following is not None:
                    self._sent.add(following)
            if following is not None:
                self._send(following, ended)
            try:
                batch.callback(batch)
            except Exception:
                _log.exception("joblib.callback_failed")


def _missing(error: Exception) -> str | None:
    """Return which package of those that plugins bring a node lacks; what a task imports itself is its own affair."""
    if isinstance(error, ModuleNotFoundError):
        return next((package for package in ("joblib", "threadpoolctl") if f"'{package}'" in str(error)), None)
    return next((package for package in _BROUGHT_BY if f"no module {package!r}" in str(error)), None)
