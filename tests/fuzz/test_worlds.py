"""The worlds of the coverage-guided fuzzer hold without its guidance: some inputs of every target."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.seeds import seeds

EACH = 60


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds("inputs of links", 1))
def test_inputs_of_every_target_are_taken_or_refused(seed: int) -> None:
    """Nothing but a refusal, no hang, no descriptor left."""
    worlds = Path(__file__).with_name("coverage") / "fuzz_worlds.py"
    done = subprocess.run(
        [sys.executable, str(worlds), str(seed), str(EACH)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        check=False,
        capture_output=True,
        text=True,
        timeout=55,
    )
    assert done.returncode == 0, done.stdout + done.stderr
