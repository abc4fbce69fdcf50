"""Vast.ai's section of the published table of faults: whole, true, and nothing left in any of its rows."""

from __future__ import annotations

import pytest

from tests.clouds.fault_page import check_row, check_section
from tests.clouds.provoking import Fault, marked
from tests.clouds.vastai.cloud import Cloud
from tests.clouds.vastai.fault_table import FAULTS, TITLE, provoke


def test_every_fault_has_its_row_and_nothing_was_left() -> None:
    """A fault that was not provoked has empty cells, which is none of the two."""
    check_section(TITLE, FAULTS)


@pytest.mark.timeout(150)
@pytest.mark.parametrize("fault", marked(TITLE, FAULTS))
def test_the_row_is_true(vastai: Cloud, fault: Fault) -> None:
    """What comes of the fault today is what the page says."""
    check_row(TITLE, fault.name, provoke(fault, vastai))
