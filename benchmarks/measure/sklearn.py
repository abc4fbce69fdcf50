"""
joblib's tasks and a grid search of scikit-learn, on a pool and in joblib's own processes, taking turns.

Both have two processes of this machine, warm: joblib's own are those of loky.

usage: python -m measure.sklearn tasks|grid TURNS
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from measure.harness import Job, Results, answer, in_frameworks, number
from measure.table import Criterion, Number, Row, rate, seconds

TASKS = 1000
SLOTS = 2


def square(x: int) -> int:
    return x * x


@contextmanager
def pool() -> Iterator[Any]:
    """
    Open a pool that scikit-learn uses.
    """
    import skyward as sky

    with sky.integrations.ScikitLearnPool(concurrency=SLOTS, console="silent") as opened:
        yield opened


def tiny(backend: str) -> None:
    """
    Run a thousand tasks that take no time.
    """
    from joblib import Parallel, delayed

    if [x * x for x in range(TASKS)] != Parallel(n_jobs=SLOTS, backend=backend)(map(delayed(square), range(TASKS))):
        raise RuntimeError(f"{backend} returned other results than the function does here.")


def grid(backend: str) -> None:
    """
    Search 12 settings on 5 folds of the digits.
    """
    from joblib import parallel_config
    from sklearn.datasets import load_digits
    from sklearn.model_selection import GridSearchCV
    from sklearn.svm import SVC

    settings = {"C": [0.3, 1, 3, 10], "gamma": [3e-4, 1e-3, 3e-3]}
    with parallel_config(backend=backend):
        GridSearchCV(SVC(), settings, cv=5, n_jobs=SLOTS).fit(*load_digits(return_X_y=True))


def measure(work: Callable[[str], None], turns: int, middle: Callable[[Sequence[float]], float]) -> dict[str, float]:
    """
    Take the times of both in turn, and give the middle and the quartiles of each.
    """
    # Nobody who only looks at times has to hear of folds with few members.
    warnings.simplefilter("ignore")
    times: dict[str, list[float]] = {"loky": [], "skyward": []}
    with pool():
        for turn in range(turns + 2):
            for backend, taken in times.items():
                started = time.perf_counter()
                work(backend)
                # The first two turns load what is used, and fill caches.
                if turn > 1:
                    taken.append(time.perf_counter() - started)
    found: dict[str, float] = {}
    for backend, taken in times.items():
        low, _, high = statistics.quantiles(taken, n=4)
        found |= {f"{backend}_s": middle(taken), f"{backend}_low_s": low, f"{backend}_high_s": high}
    return found


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    return {
        "sklearn tasks": in_frameworks("measure.sklearn", "tasks", "61" if quick else "201"),
        "sklearn grid": in_frameworks("measure.sklearn", "grid", "5" if quick else "15"),
    }


def rows(results: Results) -> list[Row]:
    """
    Judge the rate of tasks, what one costs, and the time of the search.
    """
    ours, loky = (number(results, "sklearn tasks", field) for field in ("skyward_s", "loky_s"))
    ours_rate, loky_rate = (
        Number(note=each.note) if each.value is None else Number(TASKS / each.value) for each in (ours, loky)
    )
    each = None if ours.value is None else ours.value / TASKS * 1e6
    searched, loky_searched = (number(results, "sklearn grid", field) for field in ("skyward_s", "loky_s"))
    spreads = f"middle half {_spread(results, 'skyward')}, loky {_spread(results, 'loky')}"
    return [
        Row(
            what="`Parallel(n_jobs=2)` of 1,000 tiny tasks (limit: joblib's own processes)",
            limit=rate(loky_rate),
            ours=rate(ours_rate),
            criteria=(
                Criterion("loky", ours_rate.over(loky_rate), at_least=1),
                Criterion("a task", each, at_most=50, unit="µs"),
            ),
            bounded_by="joblib, which looks every 10 ms whether the next batch has ended",
        ),
        Row(
            what=f"`GridSearchCV` on the digits, 60 fits, 2 processes ({spreads})",
            limit=seconds(loky_searched),
            ours=seconds(searched),
            criteria=(Criterion("loky", searched.over(loky_searched), at_most=1.1),),
            bounded_by="the fits themselves, on the cores there are",
        ),
    ]


def _spread(results: Results, backend: str) -> str:
    """
    Tell between which times the middle half of the searches is.
    """
    low, high = (number(results, "sklearn grid", f"{backend}_{end}_s") for end in ("low", "high"))
    return "not measured" if low.value is None or high.value is None else f"{low.value:.2f}-{high.value:.2f} s"


if __name__ == "__main__":
    # A thousand tiny tasks take one or two of joblib's looks, and which of them the median is, is chance.
    work, middle = {"tasks": (tiny, statistics.fmean), "grid": (grid, statistics.median)}[sys.argv[1]]
    answer(measure(work, int(sys.argv[2]), middle))
