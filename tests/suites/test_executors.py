"""
CPython's own tests of executors, on a pool.

Left out are those of what a pool has not, workers to count or processes that the executor starts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import skyward as sky

pytestmark = pytest.mark.suites

shipped = pytest.importorskip("test.test_concurrent_futures", reason="this interpreter ships no tests of executors")
executors, futures, shutdowns, waiting, cases = (
    pytest.importorskip(f"{shipped.__name__}.{name}")
    for name in ("executor", "test_as_completed", "test_shutdown", "test_wait", "util")
)


@pytest.fixture(scope="module", autouse=True)
def pool() -> Iterator[None]:
    """One node of as many slots as the executors of those tests have workers."""
    with sky.Compute(concurrency=5, console="silent") as _OnPool.pool:
        yield


class _OnPool:
    """Give each test an executor of the pool."""

    pool: sky.Pool
    worker_count = 5

    def setUp(self) -> None:
        """Make it."""
        super().setUp()  # type: ignore[misc]  # of the test case
        self.t1 = time.monotonic()
        self.executor_type = lambda **_: self.pool.executor()
        self.executor = self.pool.executor()

    def tearDown(self) -> None:
        """Shut it down."""
        self.executor.shutdown()
        super().tearDown()  # type: ignore[misc]  # of the test case


class TestExecutor(_OnPool, executors.ExecutorTest, cases.BaseTestCase):
    test_max_workers_negative = None


class TestWait(_OnPool, waiting.WaitTests, cases.BaseTestCase):
    pass


class TestAsCompleted(_OnPool, futures.AsCompletedTests, cases.BaseTestCase):
    pass


class TestShutdown(_OnPool, shutdowns.ExecutorShutdownTest, cases.BaseTestCase):
    test_interpreter_shutdown = test_submit_after_interpreter_shutdown = test_hang_gh83386 = None
