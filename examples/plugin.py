"""
Write a plugin: something each worker sets up once, and something around every task.
"""

import functools
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import skyward as sky


@contextmanager
def scratch(info: sky.InstanceInfo) -> Iterator[None]:
    """
    Keep a folder of the worker's own for as long as the worker lives.
    """
    folder = tempfile.mkdtemp(prefix=f"node-{info.node}-")
    os.environ["SCRATCH"] = folder
    try:
        yield
    finally:
        shutil.rmtree(folder)


def timed(function: Callable[..., Any]) -> Callable[..., Any]:
    """
    Write down in that folder how long each task took.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            with Path(os.environ["SCRATCH"], "tasks.txt").open("a") as file:
                print(function.__name__, f"{time.perf_counter() - started:.6f}", file=file)

    return run


stopwatch = sky.Plugin.create("stopwatch").with_around_process(scratch).with_decorator(timed)


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@sky.function
def protocol() -> list[str]:
    lines = Path(os.environ["SCRATCH"], "tasks.txt").read_text().splitlines()
    return [line.split()[0] for line in lines]


with sky.Compute(plugins=[stopwatch]) as pool:
    print("results:", pool.map(fibonacci, [10, 12, 14]))
    print("written down by the plugin:", protocol() >> pool)
