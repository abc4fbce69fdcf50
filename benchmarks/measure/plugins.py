"""
What each plugin that is around tasks costs one of them.

usage: python -m measure.plugins torch|accelerate|transformers|jax|keras|tensorflow
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

from measure.harness import Job, Outcome, Results, answer, in_frameworks, number
from measure.table import Criterion, Row, milliseconds

PLUGINS = {
    "torch": "what `instance_info` builds for the call",
    "accelerate": "the torch plugin, and the environment, which is compared before and after the call",
    "transformers": "what the accelerate plugin does",
    "jax": "what `instance_info` builds for the call",
    "keras": "the jax plugin, and `instance_info` once more",
    "tensorflow": "what `instance_info` builds for the call",
}
"""Those that are around tasks, and what bounds them."""

WARM, TASKS = 200, 2000


def one() -> int:
    return 1


def plugins(name: str) -> Sequence[Any]:
    """
    Make what a pool has for a plugin: Keras stands above the plugin of its backend.
    """
    import skyward as sky

    if name == "keras":
        return [sky.plugins.jax(), sky.plugins.keras(backend="jax")]
    return [getattr(sky.plugins, name)()]


@cache
def prepare(name: str) -> ExitStack:
    """
    Have around this process what the plugins have around every process of their pool.
    """
    import skyward as sky

    around = ExitStack()
    for plugin in plugins(name):
        around.enter_context(plugin.skyward_around_process(sky.instance_info()))
    return around


def costs(name: str) -> int:
    """
    Call a function as the plugins wrap it and as it is, once each, and tell the difference in nanoseconds.
    """
    from skyward.plugin import decorated

    prepare(name)
    wrapped = decorated(plugins(name), one)
    began = time.perf_counter_ns()
    wrapped()
    between = time.perf_counter_ns()
    one()
    return between - began - (time.perf_counter_ns() - between)


def measure(name: str) -> dict[str, float]:
    """
    Have a worker tell what the plugin takes of a task, in tasks of their own, as most have one call in them.

    It is taken where it is spent: on the way to the result, other processes of the machine differ by more than that.
    """
    import skyward as sky

    task = sky.function(costs)
    with sky.Compute(console="silent") as pool:
        times = [task(name) >> pool for _ in range(WARM + TASKS)][WARM:]
    return {"above_us": statistics.median(times) / 1e3}


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    return {f"plugin {name}": in_frameworks("measure.plugins", name) for name in PLUGINS}


def rows(results: Results) -> list[Row]:
    """
    Judge what a task costs with each.
    """
    return [_row(results, name, bound) for name, bound in PLUGINS.items()]


def _row(results: Results, name: str, bound: str) -> Row:
    above = number(results, f"plugin {name}", "above_us")
    seen = [values["above_us"] for values in results.get(f"plugin {name}", Outcome()).values]
    spread = f" ({min(seen):.0f} to {max(seen):.0f})" if len(seen) > 1 else ""
    return Row(
        what=f"what the plugin {name} takes of a task",
        ours=milliseconds(above) if above.value is None else f"{above.value:.0f} µs{spread}",
        criteria=(Criterion("a task", above.value, at_most=50, unit="µs"),),
        bounded_by=bound,
    )


if __name__ == "__main__":
    answer(measure(sys.argv[1]))
