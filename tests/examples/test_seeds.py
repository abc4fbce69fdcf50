"""
Every example that the user's documents print runs in the spelling that it is printed in.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.running import ends_with
from tests.seeds import some

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "seeds"

LAST_LINES = {
    "accelerators.py": r"42 kinds \| smallest that will do: narrow \| there: T4, 1 x 16 GB",
    "allocation.py": r"11 spellings \| none to be had: spot False \| half of two: \[False, True\]",
    "callbacks.py": r"14 events made \| written down: \['Metrics', 'hidden', 'hidden'\] \| lent: True",
    "cheat_sheet.py": r"30 \[30, 30\] \(3, 6\) 30 \[3, 6, 9, 12\] 2 30",
    "cluster.py": (r"\['the head', 'worker 1 of 2'\] \| nodes \[0, 1\] \| one meeting place: True \| sums \[6, None\]"),
    "decorator.py": r"\(8, 16, 30\)",
    "ephemeral.py": r"quality 6 \| left on the bill: 0 \| pools open: 0",
    "handlers.py": r"done",
    "image.py": r"hash of 12 characters, equal if packages are: True \| installs ffmpeg: True \| /data/hf, rate 0\.5",
    "jax_training.py": r"processes: \[2, 2\] \| by the plugin: \[2, 2\]",
    "joblib_pool.py": r"\[1, 1, 2, 6, 24, 120\] \[1, 1, 2\] \| better than 0\.9: True",
    "keras_training.py": r"backend and progress: \[\('jax', True\), \('jax', True\)\]",
    "lazy.py": r"frozen: True \| here and there: 0\.875 0\.875 \| the pickled call: 42",
    "log_file.py": r"the log tells of the node: True",
    "methods.py": r"mapped \[1, 4, 9\] \| streamed \[2, 4\] \| in any order \{2, 4\}",
    "metrics.py": r"answer 42 \| disk between 0 and 100: True",
    "multi_pool.py": r"side by side: 1 x T4 and 8 x A100 \| MultiPool of two clouds",
    "options.py": r"nodes \[0, 1\] \| The nodes of this pool work by themselves, .*cluster=False\.",
    "output.py": r"\['head 0', 'second 1', 'warning 0'\] \| \['captured'\]",
    "plugin.py": r"doubled by a plugin: 42 \| built in: 9",
    "pool_settings.py": r"pools described: 6 \| open: 0",
    "providers.py": (
        r"fallback: local \| own rule: rehearsal \| cheapest: local \| NoAvailableProviderError \| all 2 failed"
    ),
    "sharding.py": (
        r"total 499500 \| labelled \[10, 10, 10, 10\] \| even parts \[2, 2, 2, 2\] \| third part \['e', 'f'\]"
    ),
    "shared_state.py": (
        r"\['a', 'b', None\] \| saved: 2 \| all had arrived: True \| both ways: 2 \| refused off the pool: True"
    ),
    "sizes.py": r"4 described \| began with one or more: True \| reached True",
    "tensorflow_training.py": r"workers and replicas: \[\(2, 2\), \(2, 2\)\]",
    "storage.py": r"\['checkpoints/model.pt'\] \| the same: True \| there: True \| removed: True",
    "three_ways.py": r"flat 2 \| explicit 2 \| named 2 \| of a session \[1, 1\]",
    "time_limits.py": r"in time \| TaskTimeoutError",
    "torch_training.py": (
        r"learned: True \| initialised, samples seen: \[\(True, 16\), \(True, 16\)\] \| by hand: \['done', None\]"
    ),
    "transformers_training.py": r"world and progress: \[\(2, True\), \(2, True\)\]",
    "volumes.py": r"first \| first \| 2 rows",
    "workers.py": r"threads: 1 process \| fresh processes: 4 for 4 tasks",
}
# Those of frameworks each train in another one: a run that has a share of what is drawn has two of them.
TRAININGS = sorted(name for name in LAST_LINES if name.endswith("_training.py"))
DRAWN = some("seeds' trainings", TRAININGS, least=0.4)
SLOW = [pytest.mark.slow, pytest.mark.timeout(300)]
FRAMEWORKS = [pytest.mark.frameworks, pytest.mark.timeout(300)]


def marks(name: str) -> list[pytest.MarkDecorator]:
    """Return the marks of an example: its suite is that of what it needs."""
    return FRAMEWORKS if name in TRAININGS else SLOW


def test_every_example_is_run() -> None:
    """No example is without its expected line, and no line is left of an example that is gone."""
    assert set(LAST_LINES) == {path.name for path in FOLDER.glob("*.py")}


def test_the_readme_names_every_example() -> None:
    """The table says of each file which documents it follows."""
    assert set(LAST_LINES) == set(re.findall(r"`(\w+\.py)`", (FOLDER / "README.md").read_text()))


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=marks(name)) for name in sorted(LAST_LINES) if name not in TRAININGS or name in DRAWN],
)
def test_example_ends_with_its_line(name: str, tmp_path: Path) -> None:
    """An example exits with 0, and its last line is the expected one."""
    ends_with(FOLDER / name, LAST_LINES[name], tmp_path)
