"""The table of measured losses: each fault has a row, and what was measured is within what is promised."""

from __future__ import annotations

import re

import pytest

from tests.ssh.loss_table import COLUMNS, FAULTS, Fault, rows

AT_ONCE = 1.0
"""Seconds within which calls are begun elsewhere, once it is noticed that they have to be."""


def test_each_fault_has_a_row() -> None:
    """In the order in which they are provoked."""
    assert [fault.name for fault in FAULTS] == list(rows())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_was_measured_is_what_is_promised(fault: Fault) -> None:
    """No result is lost; a kill is noticed in 5 s, silence in 20, and calls are elsewhere a second later."""
    cells = dict(zip(COLUMNS[1:], rows()[fault.name].split(" | "), strict=True))
    assert "0" == cells["results lost"]
    assert (fault.sign is None) == (cells["noticed in"] == "not noticed")
    assert fault.sign is None or _seconds(cells["noticed in"]) <= fault.within
    assert not fault.elsewhere or _seconds(cells["its call begun elsewhere after"]) <= AT_ONCE


def _seconds(cell: str) -> float:
    found = re.fullmatch(r"([0-9.]+) s", cell)
    assert found, cell
    return float(found[1])
