"""What is on the left of an operator by mistake, and what is written instead."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import skyward as sky

OPERATORS = [(">>", operator.rshift), ("@", operator.matmul), (">", operator.gt)]


def plain(x: int) -> int:
    return 2 * x


@sky.function
def double(x: int) -> int:
    return 2 * x


@sky.function
def take(*items: object, **named: object) -> None: ...


class Item:
    shown = 0

    def __repr__(self) -> str:
        Item.shown += 1
        return "item"


class Model:
    @sky.function
    def fit(self, x: int) -> int:
        return x


def targets() -> list[tuple[str, Any]]:
    """A pool, and the module that stands for the innermost one."""
    return [("pool", sky.Compute()), ("sky", sky)]


@pytest.mark.parametrize(("written", "apply"), OPERATORS)
@pytest.mark.parametrize(
    ("left", "message"),
    [
        (plain(3), "is an int, 6, and no pending call. Is the function that returned it decorated with @sky.function"),
        (None, "is None and no pending call. Is the function that returned it decorated"),
        ("text", "is a str, 'text', and no pending call"),
        (np.arange(3), r"is a ndarray, array\(\[0, 1, 2\]\), and no pending call"),
        (double, r"double was not called. Write `double\(\.\.\.\) {}`"),
        (Model().fit, r"Model.fit was not called. Write `Model.fit\(\.\.\.\) {}`"),
        (plain, r"plain is a plain function, and was not called. Decorate it .* write `plain\(\.\.\.\) {}`"),
    ],
)
def test_what_is_no_pending_call(written: str, apply: Callable[[Any, Any], Any], left: Any, message: str) -> None:
    """What stands there is named, with the slip that it most likely is."""
    for name, target in targets():
        with pytest.raises(sky.UsageError, match=message.replace("{}", f"{written} {name}")) as caught:
            apply(left, target)
        assert f"`{written}`" in str(caught.value) or f"{written} {name}" in str(caught.value)


@pytest.mark.parametrize("call", [double, lambda inner: double(x=inner)], ids=["place", "name"])
def test_a_pending_call_is_no_argument(call: Callable[[Any], object]) -> None:
    """The function would be given the call, and not what comes of it."""
    with pytest.raises(
        sky.UsageError,
        match=r"double was given <pending double\(1\)>, which has not run\. Run it first .*`double\(\.\.\. >> pool\)",
    ):
        call(double(1))


def test_a_decorator_s_keyword_that_is_unknown() -> None:
    """The nearest is offered."""
    with pytest.raises(sky.UsageError, match=r"@sky\.function has no setting 'retry'\. Did you mean 'retries'\?"):
        sky.function(retry=1)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("build", "keyword", "meant"),
    [
        (sky.Image, "packages", "'pip'"),
        (sky.Image, "requirements", "'pip'"),
        (sky.Image, "includs", "'includes'"),
        (sky.Spec, "gpu", "'accelerator'"),
        (sky.Options, "budgt", "'budget'"),
        (sky.Worker, "concurency", "'concurrency'"),
        (sky.Nodes, "maximum", "'max'"),
        (sky.LogConfig, "levl", "'level'"),
        (sky.PipIndex, "package", "'packages'"),
        (sky.SSH, "host", "'hosts'"),
        (sky.AWS, "regions", "'region'"),
        (sky.Verda, "location", "It has"),
    ],
)
def test_a_value_s_keyword_that_is_unknown(build: Callable[..., Any], keyword: str, meant: str) -> None:
    """The nearest is offered; where none is near, all are listed."""
    with pytest.raises(sky.UsageError, match=f"has no setting '{keyword}'.*{meant}"):
        build(**{keyword: 1})


def test_a_call_of_much_is_shown_in_a_line() -> None:
    """Of a large argument only the beginning is looked at, and of many arguments only the first."""
    assert "<pending take([item, item, item, item, item, item, ...)>" == repr(take([Item()] * 100_000))
    assert 6 == Item.shown
    assert "<pending take(0, 1, 2, 3, 4, a=5, ...)>" == repr(take(*range(5), a=5, b=6, c=7))
    assert len(repr(take("x" * 1000))) < 80


def test_a_call_gives_its_plain_function() -> None:
    """For tools that look at it."""
    assert double(1).fn is double.local
