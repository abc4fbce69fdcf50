"""What one check says, whatever the user's function does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from skyward.node.health.check_process import verdict


def _raises() -> bool:
    raise OSError("no such device")


def _leaves() -> bool:
    raise SystemExit(3)


@pytest.mark.parametrize(
    ("predicate", "said"),
    [
        (lambda: True, {"ok": True}),
        (lambda: False, {"ok": False, "why": "it returned False"}),
        (_raises, {"ok": False, "why": "it raised OSError: no such device"}),
        (_leaves, {"ok": False, "why": "it raised SystemExit: 3"}),
        (lambda: None, {"mistake": "it returned None, which is neither True nor False"}),
        (lambda: 1, {"mistake": "it returned 1, which is neither True nor False"}),
        (lambda _: True, None),
    ],
)
def test_a_check_is_judged(predicate: Callable[..., Any], said: dict[str, Any] | None) -> None:
    """What is no bool is a mistake, and what raises has failed."""
    assert said in (None, verdict(predicate))


def test_a_bool_of_numpys_is_one() -> None:
    """Comparisons of arrays' elements give it."""
    numpy = pytest.importorskip("numpy")
    assert {"ok": True} == verdict(lambda: numpy.float64(1) > 0)
