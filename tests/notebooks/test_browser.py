"""A pool in JupyterLab, as a browser shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytestmark = [pytest.mark.browser, pytest.mark.timeout(400), pytest.mark.filterwarnings("default")]

CELLS = (
    """
import time
import skyward as sky

@sky.function
def train(steps, said):
    for step in sky.track(range(steps)):
        time.sleep(0.05)
    print(said)
    return steps

pool = sky.Compute(nodes=2, logging=False)
pool.open()
""",
    "promised = train(100, 'from the second cell') > pool",
    "train(20, 'from the third cell <b>bold</b>') >> pool; promised.result()",
    "forever = train(10**6, '') > pool\ntime.sleep(600)",
    "assert train(2, 'after the interrupt') >> pool == 2; forever.done()",
    "pool",
    "pool.close()",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[object]:
    """Show a notebook."""
    from tests.notebooks.lab import lab, page_of, write_notebook

    directory = tmp_path_factory.mktemp("lab")
    write_notebook(directory, [cell.strip() for cell in CELLS])
    with lab(directory) as url, page_of(url) as shown:
        yield shown


def test_a_notebook_from_its_first_cell_to_its_last(page: object) -> None:
    """The display, output under the cell that caused it, an interrupt, the closing line."""
    from typing import Any

    from tests.notebooks.lab import output_of, press, run_cell
    from tests.waiting import until

    shown: Any = page
    run_cell(shown, 0)
    until(lambda: "node-1" in output_of(shown, 0) and "● ready" in output_of(shown, 0))
    run_cell(shown, 1)
    until(lambda: "/100" in output_of(shown, 0))
    run_cell(shown, 2)
    until(lambda: "from the third cell <b>bold</b>" in output_of(shown, 2))
    until(lambda: "from the second cell" in output_of(shown, 1))
    assert "from the second cell" not in output_of(shown, 2)
    run_cell(shown, 3)
    until(lambda: "1,000,000" in output_of(shown, 0))
    press(shown, "interrupt")
    until(lambda: "KeyboardInterrupt" in output_of(shown, 3))
    run_cell(shown, 4)
    until(lambda: "True" in output_of(shown, 4))
    until(lambda: "1 cancelled" in output_of(shown, 0))
    run_cell(shown, 5)
    until(lambda: "open" in output_of(shown, 5))
    run_cell(shown, 6)
    until(lambda: "closed after" in output_of(shown, 0) and "3 calls done, 1 cancelled" in output_of(shown, 0))
    assert "3 calls done, 1 cancelled" in output_of(shown, 6)
