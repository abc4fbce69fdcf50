"""
Take the picture of `docs/notebooks.md`: a pool at work in JupyterLab.

    make browser, then: .cache/browser/bin/python -m tests.notebooks.screenshot docs/notebook.png
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.notebooks.lab import lab, output_of, page_of, run_cell, write_notebook
from tests.waiting import until

CELLS = (
    """
import time
import skyward as sky

@sky.function
def train(seed):
    for epoch in sky.track(range(60), label=f"train {seed}"):
        time.sleep(0.1)
    print(f"seed {seed}: loss {0.3 / (seed + 1):.3f}")
    return seed

@sky.function
def square(x):
    time.sleep(0.02)
    return x * x

pool = sky.Compute(nodes=4)
pool.open()
""",
    "losses = [train(seed) > pool for seed in range(3)]",
    "sum(pool.map(square, range(1000)))",
)


def main(file: Path) -> None:
    """Run a notebook, and take its picture while calls are under way."""
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        write_notebook(directory, [cell.strip() for cell in CELLS])
        with lab(directory) as url, page_of(url) as page:
            run_cell(page, 0)
            until(lambda: output_of(page, 0).count("● ready") == 4)
            run_cell(page, 1)
            run_cell(page, 2)
            until(lambda: "/1,000" in output_of(page, 0))
            page.wait_for_timeout(2500)
            page.screenshot(path=str(file))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
