"""What makes no sense is refused at once, and says what would."""

from __future__ import annotations

import contextvars
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import skyward as sky


@sky.function
def double(x: int) -> int:
    return 2 * x


@sky.function
def count(n: int) -> Iterator[int]:
    yield from range(n)


@sky.function
def total(numbers: Iterator[int]) -> int:
    return sum(numbers)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"nodez": 2}, "Did you mean 'nodes'"),
        ({"nodes": 0}, "nodes must be"),
        ({"nodes": (8, 2)}, "nodes"),
        ({"nodes": True}, "nodes"),
        ({"ttl": -1}, "ttl"),
        ({"provision_timeout": math.nan}, "provision_timeout"),
        ({"shutdown_timeout": "soon"}, "shutdown_timeout"),
        ({"accelerator": "H10"}, "H100"),
        ({"console": "ritch"}, "rich"),
        ({"executor": "fork"}, "executor"),
        ({"concurrency": 0}, "concurrency"),
        ({"allocation": 1.5}, "allocation"),
        ({"vcpus": 2, "cpu": 2}, "cpu"),
        ({"name": "x", "nodes": 2}, "name"),
        ({"image": sky.Image(python="3.5")}, r"3\.5"),
        ({"provider": "aws"}, "provider"),
    ],
)
def test_setting_that_makes_no_sense(keywords: dict[str, Any], message: str) -> None:
    """The parameter is named, before anything starts."""
    with pytest.raises((sky.ConfigError, TypeError), match=message):
        sky.Compute(**keywords)


def test_minimum_above_maximum() -> None:
    """The bounds of a pool have an order."""
    with pytest.raises(sky.ConfigError, match="min"):
        sky.Nodes(desired=4, min=5, max=8)


def test_specs_and_keywords_do_not_mix() -> None:
    """The error says which convention is meant."""
    with pytest.raises(TypeError, match="nodes"):
        sky.Compute(sky.Spec(), nodes=2)


@pytest.mark.parametrize("timeout", [0, -1, math.inf, math.nan, "1", True])
def test_timeout_that_makes_no_sense(timeout: Any) -> None:
    """Of a function, or of a call."""
    with pytest.raises(sky.ConfigError, match="timeout"):
        sky.function(timeout=timeout)(lambda: 1)
    with pytest.raises(sky.ConfigError, match="timeout"):
        double(1).with_timeout(timeout)


@pytest.mark.parametrize("args", [(), (1, 2), ("x", "y", "z")])
def test_wrong_arguments_are_refused_at_the_call(args: tuple[Any, ...]) -> None:
    """Not on a node."""
    with pytest.raises(TypeError, match=r"double\(x: .*\) -> .* cannot be called like this"):
        double(*args)
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'"):
        double(1, y=2)  # type: ignore[call-arg]


def test_pending_call_is_no_value() -> None:
    """It cannot be compared or tested."""
    with pytest.raises(sky.UsageError, match=r"<pending double\(1\)> has not run"):
        bool(double(1))
    for compare in ("__eq__", "__lt__", "__le__", "__ge__"):
        with pytest.raises(sky.UsageError, match="cannot be compared"):
            getattr(double(1), compare)(2)


def test_group_knows_only_one_operator(pool: sky.Pool) -> None:
    """`@` and `>` are for single calls."""
    with pytest.raises(sky.UsageError, match="cannot be broadcast"):
        (double(1) & double(2)) @ pool
    with pytest.raises(sky.UsageError, match="`>`"):
        assert (double(1) & double(2)) > pool


def test_missing_parentheses_are_recognised(pool: sky.Pool) -> None:
    """`a & b >> pool` is `a & (b >> pool)` in Python."""
    with pytest.raises(TypeError, match=r"write `\(a & b\) >> pool`"):
        double(1) & double(2) >> pool  # type: ignore[operator]


def test_a_call_that_would_send_another_from_its_node(pool: sky.Pool) -> None:
    """Neither through the module nor through the pool, which is no value that travels."""

    @sky.function
    def through_the_module(x: int) -> int:
        return double(x) >> sky

    @sky.function
    def through_the_pool(x: int) -> int:
        return double(x) >> pool

    with pytest.raises(sky.NoPoolError, match=r"`>> sky` is in a function that runs on a node.*f\.local\(\.\.\.\)"):
        through_the_module(1) >> pool
    with pytest.raises(sky.SerializationError, match=r"`pool`.* is a skyward\.pool\.Pool.*No call is sent from a node"):
        through_the_pool(1) >> pool


def test_function_that_was_not_called(pool: sky.Pool) -> None:
    """The missing call is named."""
    with pytest.raises(sky.UsageError, match=r"write `double\(\.\.\.\)`"):
        sky.gather(double, double)  # type: ignore[call-overload]
    with pytest.raises(sky.UsageError, match="call the function first"):
        pool.run(double)  # type: ignore[type-var]


def test_generator_functions_cannot_be_grouped(pool: sky.Pool) -> None:
    """Nor mapped."""
    with pytest.raises(TypeError, match="generator function"):
        sky.gather(count(1), count(2))
    with pytest.raises(TypeError, match="generator function"):
        pool.map(count, [1])


def test_streamed_argument_is_consumed_once(pool: sky.Pool) -> None:
    """So there is nothing to try again with, or to send to all."""
    with pytest.raises(TypeError, match="retries must be 0"):
        total(iter([1])).with_retries(1) >> pool
    with pytest.raises(TypeError, match="one consumer"):
        total(iter([1])) @ pool
    with pytest.raises(TypeError, match="takes an iterator"):
        total(5) >> pool  # type: ignore[arg-type]


def test_target_that_is_no_pool() -> None:
    """Numbers, strings and the module outside a pool."""
    with pytest.raises(sky.UsageError, match="it must be an open pool"):
        double(1) >> 5
    with pytest.raises(sky.NoPoolError, match="none is open"):
        contextvars.Context().run(lambda: double(1) >> sky)


def test_pool_is_used_while_it_is_open_and_once() -> None:
    """Before and after, the error says so."""
    pool = sky.Compute(console="silent")
    with pytest.raises(sky.PoolClosedError, match="not open yet"):
        double(1) >> pool
    with pool:
        with pytest.raises(sky.PoolClosedError, match="entered once"):
            pool.__enter__()
        assert double(1) >> pool == 2
    with pytest.raises(sky.PoolClosedError, match="closed"):
        double(1) >> pool


def test_forked_child_cannot_use_the_pool(pool: sky.Pool) -> None:
    """It gets a clear error, and the parent's pool is unharmed."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            double(1) >> pool
        except sky.PoolClosedError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as pipe:
        assert b"was forked" in pipe.read()
    assert double(1) >> pool == 2


def test_provider_that_is_not_installed(tmp_path: Path) -> None:
    """The error is the command to type."""
    for name in ("attr", "attrs", "cloudpickle", "pluggy"):
        (tmp_path / name).symlink_to(Path(import_module(name).__file__ or "").parent)
    done = subprocess.run(
        # Without the packages of this environment, in which every provider is installed.
        [sys.executable, "-S", "-c", "import skyward; skyward.RunPod"],
        env={"PYTHONPATH": f"{tmp_path}:{Path(sky.__file__).parents[1]}"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "Type: pip install skyward-runpod\n" in done.stderr
