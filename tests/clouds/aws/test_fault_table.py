"""The published table of faults: whole, true, and nothing left in any of its rows."""

from __future__ import annotations

import pytest

from tests.clouds.aws.cloud import Cloud
from tests.clouds.aws.fault_table import FAULTS, PAGE, WORKED, Fault, Rehearsed, provoke


def published() -> dict[str, list[str]]:
    """Read the rows of the page."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    rows = [[cell.strip() for cell in line.replace("\\|", "/").strip("|").split("|")] for line in lines]
    return {row[0]: row[1:] for row in rows}


def test_every_fault_has_its_row_and_nothing_was_left() -> None:
    """A fault that was not provoked has empty cells, which is none of the two."""
    rows = published()
    assert [fault.name for fault in FAULTS] == list(rows)
    for fault in FAULTS:
        outcome, *left = rows[fault.name]
        assert fault.works == (outcome == WORKED), fault.name
        assert fault.works or outcome.startswith("`"), fault.name
        assert ["0", "0"] == left, fault.name


@pytest.mark.clouds
@pytest.mark.timeout(150)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_row_is_true(aws: Cloud, fault: Fault | Rehearsed) -> None:
    """What comes of the fault today is what the page says; words of errors may differ."""
    row = provoke(fault, aws)
    outcome, instances, processes = published()[fault.name]
    assert outcome.partition(":")[0] == row.outcome.partition(":")[0]
    assert (instances, processes) == (str(row.instances), str(row.processes))
