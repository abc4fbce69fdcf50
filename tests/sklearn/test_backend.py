"""
joblib's tasks on a pool: where they run, how many at once, what they raise, and what ends them.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from joblib import Parallel, delayed, effective_n_jobs, parallel_config, register_parallel_backend
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import LokyBackend, get_active_backend

import skyward as sky
from skyward_sklearn.backend import PoolBackend


class Unlucky(Exception):
    """An error of the user's own."""


def where(_: object = None) -> int:
    """Tell the process."""
    return os.getpid()


def alone(directory: str) -> None:
    """Raise if another task does the same at this time."""
    taken = Path(directory) / "taken"
    taken.touch(exist_ok=False)
    time.sleep(0.005)
    taken.unlink()


def fail_or_stay(number: int) -> None:
    """Fail, or stay for longer than any test takes."""
    if number == 1:
        raise Unlucky("number 1")
    time.sleep(3600)


def nested(number: int) -> tuple[int, set[int], str]:
    """Call joblib in a task, and tell where that ran and by what."""
    inner = Parallel(n_jobs=2)
    total = sum(inner(delayed(abs)(-i) for i in range(number)))
    return total, set(inner(delayed(where)() for _ in range(4))) - {os.getpid()}, type(inner._backend).__name__


def late_lock(count: int) -> Iterator[Any]:
    """Give tasks, the last of which cannot be pickled."""
    for number in range(count):
        yield delayed(str)(number)
    yield delayed(str)(threading.Lock())


def idle(pool: sky.Pool) -> bool:
    """Wait until nothing runs on a pool; false if that takes too long."""
    until = time.monotonic() + 10
    while pool.snapshot()["running"] and time.monotonic() < until:
        time.sleep(0.01)
    return pool.snapshot()["running"] == 0


@pytest.mark.slow
def test_tasks_run_in_the_processes_of_the_pool(pool: sky.Pool) -> None:
    """None of them here, in the order of the tasks."""
    pids = Parallel(n_jobs=-1, batch_size=1)(delayed(where)() for _ in range(20))
    assert os.getpid() not in pids
    assert [str(i) for i in range(50)] == Parallel(n_jobs=-1)(delayed(str)(i) for i in range(50))


@pytest.mark.parametrize(("asked", "told"), [(-1, 2), (1, 1), (-2, 1), (2, 2), (9, 2), (None, 2)])
def test_jobs_are_the_slots_of_the_pool(pool: sky.Pool, asked: int | None, told: int) -> None:
    """Or fewer, where fewer are asked for."""
    assert told == effective_n_jobs(asked)


def test_no_jobs_are_refused(pool: sky.Pool) -> None:
    """In joblib's words."""
    with pytest.raises(ValueError, match="n_jobs == 0"):
        Parallel(n_jobs=0)(delayed(where)() for _ in range(2))


def test_one_job_runs_here(pool: sky.Pool) -> None:
    """That is what `n_jobs=1` means to joblib."""
    assert [os.getpid()] == Parallel(n_jobs=1)([delayed(where)()])


def test_no_more_run_at_once_than_were_asked_for(pool: sky.Pool, tmp_path: Path) -> None:
    """All but one of two slots is one."""
    Parallel(n_jobs=-2, batch_size=1)(delayed(alone)(str(tmp_path)) for _ in range(20))
    assert [] == list(tmp_path.iterdir())


def test_what_a_task_raises_is_raised_as_itself(pool: sky.Pool) -> None:
    """Its class and message; where it was raised is its cause."""
    with pytest.raises(Unlucky, match="number 1") as caught:
        Parallel(n_jobs=-1)(delayed(fail_or_stay)(1) for _ in range(1))
    assert "fail_or_stay" in str(caught.value.__cause__)


def test_failure_stops_what_runs(pool: sky.Pool) -> None:
    """The slots are free for what comes next."""
    with pytest.raises(Unlucky):
        Parallel(n_jobs=-1, batch_size=1)(delayed(fail_or_stay)(i) for i in range(6))
    assert idle(pool)
    assert [4, 9] == Parallel(n_jobs=-1)(delayed(pow)(i, 2) for i in (2, 3))


def test_timeout_stops_what_runs(pool: sky.Pool) -> None:
    """Joblib's own `timeout=`, in seconds."""
    with pytest.raises(multiprocessing.TimeoutError):
        Parallel(n_jobs=-1, timeout=0.2)(delayed(fail_or_stay)(i) for i in (0, 2))
    assert idle(pool)


def test_results_that_nobody_wants_any_more_stop_what_runs(pool: sky.Pool) -> None:
    """Joblib warns of what was lost."""
    results = Parallel(n_jobs=-1, return_as="generator", batch_size=1)(delayed(time.sleep)(i) for i in (0, 3600))
    assert next(results) is None
    with pytest.warns(UserWarning, match="1 tasks which were still being processed by the workers have been cancelled"):
        results.close()
    assert idle(pool)


def test_results_come_as_they_are_ready(pool: sky.Pool) -> None:
    """With `return_as`, in either order."""
    squares = [i * i for i in range(40)]
    calls = [delayed(pow)(i, 2) for i in range(40)]
    assert squares == list(Parallel(n_jobs=-1, return_as="generator")(calls))
    assert squares == sorted(Parallel(n_jobs=-1, return_as="generator_unordered")(calls))


def test_parallel_can_be_used_again(pool: sky.Pool) -> None:
    """Managed by a `with` block, and afterwards; also after a failure."""
    with Parallel(n_jobs=-1) as parallel:
        assert [0, 1] == parallel(delayed(abs)(-i) for i in range(2))
        with pytest.raises(ZeroDivisionError):
            parallel(delayed(divmod)(1, i) for i in range(2))
        assert [0, 1] == parallel(delayed(abs)(-i) for i in range(2))
    assert [0, 1] == parallel(delayed(abs)(-i) for i in range(2))


def test_joblib_inside_a_task_uses_threads(pool: sky.Pool) -> None:
    """As joblib does inside its own processes."""
    found = Parallel(n_jobs=-1)(delayed(nested)(i) for i in (3, 4))
    assert [(3, set(), "ThreadingBackend"), (6, set(), "ThreadingBackend")] == found


def test_argument_that_cannot_be_pickled_fails_the_call(pool: sky.Pool) -> None:
    """Also one that is met when the first tasks have ended: nothing hangs."""
    with pytest.raises(sky.SerializationError, match="lock"):
        Parallel(n_jobs=-1, batch_size=1)(late_lock(40))


def test_threads_share_a_pool(pool: sky.Pool) -> None:
    """Each says so for itself, or names the backend; none sees another's results or failures."""

    def work(number: int) -> list[int]:
        with sky.integrations.joblib_backend(pool):
            return list(Parallel(n_jobs=-1)(delayed(pow)(number, i) for i in range(100)))

    def fail(number: int) -> str:
        with pytest.raises(Unlucky):
            Parallel(n_jobs=-1, backend="skyward", batch_size=1)(delayed(fail_or_stay)(1) for i in range(3))
        return "failed"

    with ThreadPoolExecutor(8) as threads:
        failures = [threads.submit(fail, number) for number in range(4)]
        results = list(threads.map(work, range(8)))
    assert [[number**i for i in range(100)] for number in range(8)] == results
    assert ["failed"] * 4 == [failure.result() for failure in failures]


@pytest.mark.slow
def test_pool_that_is_open_can_be_lent(pool: sky.Pool) -> None:
    """To joblib, for a block, whatever it used before."""
    with sky.Compute(console="silent") as other, parallel_config(backend="threading"):
        with sky.integrations.sklearn_backend(other) as lent:
            assert lent is other
            (inside,) = Parallel(n_jobs=-1)([delayed(where)()])
        (after,) = Parallel(n_jobs=2)([delayed(where)()])
    assert os.getpid() != inside
    assert os.getpid() == after


def test_batches_grow_as_long_as_they_are_brief(pool: sky.Pool) -> None:
    """Far more than joblib does below a twentieth of what it aims at, and as it does from there on."""
    with parallel_config(backend="skyward"), Parallel(n_jobs=-1) as parallel:
        backend = parallel._backend
        sizes = [backend.compute_batch_size()]
        for seconds in (0.001, 0.009, 0.05, 0.3):
            backend.batch_completed(sizes[-1], seconds)
            sizes.append(backend.compute_batch_size())
    assert [1, 32, 1024, 2048, 2048] == sizes


def test_events_name_the_users_function(pool: sky.Pool) -> None:
    """And not what runs a batch of its calls."""
    seen: list[str] = []
    pool.on(sky.TaskCompleted, lambda event: seen.append(event.function))
    Parallel(n_jobs=-1, batch_size=1)(delayed(where)() for _ in range(2))
    until = time.monotonic() + 10
    while len(seen) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    assert ["where", "where"] == seen


@pytest.mark.slow
def test_joblib_is_as_before_once_the_pools_are_left() -> None:
    """In whatever order and thread they are left."""

    def use() -> None:
        assert isinstance(get_active_backend()[0], LokyBackend)
        with sky.Session() as session:
            first = session.compute(plugins=[sky.plugins.joblib()], console="silent")
            second = session.compute(plugins=[sky.plugins.joblib()], console="silent")
            session.close(first)
            assert os.getpid() not in Parallel(n_jobs=2)(delayed(where)() for _ in range(2))
            with ThreadPoolExecutor(1) as elsewhere:
                elsewhere.submit(session.close, second).result()
            assert [1, 2] == Parallel(n_jobs=2)(delayed(abs)(-i) for i in (1, 2))
            assert 3 == effective_n_jobs(3)

    with ThreadPoolExecutor(1) as thread:
        thread.submit(use).result()
    get_reusable_executor().shutdown(wait=True)


def blas(side: int = 64) -> list[int]:
    """Compute with numpy, and tell how many threads each of its libraries may have."""
    import numpy as np
    from threadpoolctl import threadpool_info

    np.linalg.svd(np.ones((side, side)))
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.slow
def test_libraries_of_linear_algebra_share_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two processes gets half of the processors, as numpy sees it; joblib's own do the same."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(8))
    for name in LokyBackend.MAX_NUM_THREADS_VARS:
        monkeypatch.delenv(name, raising=False)
    with sky.integrations.JoblibPool(concurrency=2, console="silent"):
        share = max(1, min(8, os.cpu_count() or 1) // 2)
        assert {share} == {number for found in Parallel()(delayed(blas)() for _ in range(4)) for number in found}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_threads_inside_a_task_can_be_chosen(pool: sky.Pool) -> None:
    """As with joblib's own processes, for this `Parallel` alone."""
    with parallel_config("skyward", inner_max_num_threads=3):
        assert [[3]] * 4 == Parallel(n_jobs=-1)(delayed(blas)() for _ in range(4))
    assert [3] not in Parallel(n_jobs=-1)(delayed(blas)() for _ in range(4))


def begun(*words: str) -> None:
    """Note in the process that it begins."""
    os.environ["BEGUN"] = os.environ.get("BEGUN", "") + "".join(words)


@pytest.mark.slow
def test_a_process_begins_with_the_initializer(pool: sky.Pool) -> None:
    """Once in each that runs tasks of a `Parallel`, which may say so itself or by its configuration."""
    found = Parallel(n_jobs=2, initializer=begun, initargs=("a", "b"))(delayed(os.getenv)("BEGUN") for _ in range(40))
    assert {"ab"} == {*found}
    with parallel_config("skyward", initializer=begun, initargs=("c",)):
        assert {"abc", "c"} >= {*Parallel(n_jobs=2)(delayed(os.getenv)("BEGUN") for _ in range(40))}


def refuses() -> None:
    raise Unlucky("not in this process")


@pytest.mark.slow
def test_an_initializer_that_fails_is_the_error(pool: sky.Pool) -> None:
    """As itself; the pool goes on."""
    with pytest.raises(Unlucky, match="not in this process"):
        Parallel(n_jobs=2, initializer=refuses)(delayed(abs)(-i) for i in range(4))
    assert [0, 1] == Parallel(n_jobs=2)(delayed(abs)(-i) for i in range(2))


@pytest.mark.slow
def test_a_setting_that_does_not_exist_is_refused(pool: sky.Pool) -> None:
    """So do joblib's own processes."""
    with pytest.raises(TypeError, match="has no setting 'initialiser'; it has initializer and initargs"):
        Parallel(n_jobs=2, initialiser=begun)(delayed(abs)(-i) for i in range(4))


@pytest.mark.slow
def test_the_backends_class_can_be_made_and_registered(pool: sky.Pool) -> None:
    """Without arguments, as joblib makes those that are registered with it; it finds the pool that is open."""
    register_parallel_backend("mine", PoolBackend)
    for backend in ("mine", PoolBackend()):
        with parallel_config(backend):
            assert os.getpid() not in Parallel(n_jobs=-1)(delayed(where)() for _ in range(4))


@pytest.mark.slow
def test_what_cannot_be_pickled_is_a_pickling_error(pool: sky.Pool) -> None:
    """Which code that was written for joblib's own processes expects."""
    with pytest.raises(pickle.PicklingError, match="lock"):
        Parallel(n_jobs=2)(late_lock(0))
