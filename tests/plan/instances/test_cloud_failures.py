"""
A cloud that fails every launch is given up after a while.
"""

from __future__ import annotations

import pytest

from skyward.plan.instances.cloud_failures import PATIENCE, Failing, hopeless, noted


@pytest.mark.parametrize(
    ("launches", "now", "given_up"),
    [
        ([], PATIENCE, False),
        ([(0.0, False)], PATIENCE, False),
        ([(0.0, False), (9.0, False)], PATIENCE - 1, False),
        ([(0.0, False), (9.0, False)], PATIENCE, True),
        ([(0.0, False), (9.0, True), (18.0, False), (27.0, False)], PATIENCE, False),
        ([(0.0, False), (9.0, True), (18.0, False), (27.0, False)], PATIENCE + 18.0, True),
    ],
)
def test_it_is_given_up_when_all_has_failed_for_a_while(
    launches: list[tuple[float, bool]], now: float, given_up: bool
) -> None:
    """Not for one slow launch, and not where it said in between what there is."""
    failing = Failing()
    for began, answered in launches:
        failing = noted(failing, began, answered=answered)
    assert given_up is hopeless(failing, now)
