"""
Every example runs as a user would run it, and ends with the line that it promises.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.examples.running import ends_with
from tests.seeds import some

FOLDER = Path(__file__).resolve().parents[2] / "examples"

LAST_LINES = {
    "accelerate_digits.py": r"Digits read correctly: 9\d\.\d%\.",
    "broadcast_shard.py": r"most frequent: \('the', 1500\)",
    "digits.py": r"Digits read correctly: at least 9\d\.\d%\.",
    "errors.py": r"succeeded at attempt 3",
    "events.py": r"lines printed: 4 \| losses sent: 20 \| falling: True",
    "hello.py": r"\[0, 1, 4, 9\]",
    "jax_digits.py": r"Digits read correctly: 9\d\.\d%\.",
    "keras_digits.py": r"Digits read correctly: 9\d\.\d%\.",
    "map_many.py": r"longest under 5000: 3711 takes 237 steps",
    "operators.py": r"here:        49",
    "pip_image.py": r"on the node: 256\.0 MiB",
    "plugin.py": r"written down by the plugin: \['fibonacci', 'fibonacci', 'fibonacci'\]",
    "sklearn_grid.py": r"the same found: True \| unseen images read correctly: 9\d\.\d%",
    "streaming.py": r"mean of a stream of 20000: 4999\.75",
    "tensorflow_digits.py": r"Digits read correctly: 9\d\.\d%\.",
    "torch_digits.py": r"Digits read correctly: 9\d\.\d%\.",
    "transformers_digits.py": r"Digits read correctly: 9\d\.\d%\.",
}
# A run that has a share of what is drawn has a third of them: each trains the same in another framework.
TRAININGS = [f"{name}_digits.py" for name in ("accelerate", "jax", "keras", "tensorflow", "torch", "transformers")]
DRAWN = some("examples of trainings", TRAININGS, least=0.3)
# What everybody tries first is tried by every run.
MARKS = {
    **{name: [pytest.mark.frameworks, pytest.mark.timeout(300)] for name in DRAWN},
    # `make demo` runs it, and is a step of every run.
    "digits.py": [pytest.mark.everything, pytest.mark.timeout(300)],
    "hello.py": [],
    "operators.py": [],
    "pip_image.py": [pytest.mark.packaging, pytest.mark.timeout(300)],
    # A page of the documentation runs another search in every run.
    "sklearn_grid.py": [pytest.mark.everything, pytest.mark.timeout(300)],
}
SLOW = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_every_example_is_run() -> None:
    """No example is without its expected line, and no line is left of an example that is gone."""
    assert set(LAST_LINES) == {path.name for path in FOLDER.glob("*.py")}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=MARKS.get(name, SLOW))
        for name in sorted(LAST_LINES)
        if name not in TRAININGS or name in DRAWN
    ],
)
def test_example_ends_with_its_line(name: str, tmp_path: Path) -> None:
    """An example exits with 0, and its last line is the expected one."""
    ends_with(FOLDER / name, LAST_LINES[name], tmp_path)
