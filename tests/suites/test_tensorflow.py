"""
TensorFlow's tutorial of several workers on two nodes, beside two processes that are given a `TF_CONFIG` by hand.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import skyward as sky
from tests.suites.tensorflow_tutorial import train

pytestmark = [pytest.mark.suites, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
LIMIT = 200.0


def by_hand(directory: Path, epochs: int) -> list[Any]:
    """Run it as the tutorial does: each process hears which worker it is."""
    sockets = [socket.socket() for _ in range(2)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    workers = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    started = []
    for index in range(2):
        config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        words = (sys.executable, "-m", "tests.suites.tensorflow_tutorial", str(directory), str(epochs))
        env = {**os.environ, "TF_CONFIG": json.dumps(config), "CUDA_VISIBLE_DEVICES": "-1"}
        started.append(subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True))
    answers = [process.communicate(timeout=LIMIT)[0].splitlines()[-1] for process in started]
    assert [0, 0] == [process.returncode for process in started]
    return [json.loads(answer) for answer in answers]


def test_the_loop_of_the_tutorial_gives_what_it_gives_by_hand(tmp_path: Path) -> None:
    """Losses and weights of two epochs, and of a third that begins at their checkpoint in another broadcast."""
    for name in ("hand", "pool"):
        (tmp_path / name).mkdir()
    ours = sky.function(train)
    with sky.Compute(nodes=2, plugins=[sky.plugins.tensorflow()], console="silent") as pool:
        found = [ours(str(tmp_path / "pool"), epochs).with_timeout(LIMIT) @ pool for epochs in (2, 3)]
    expected = [by_hand(tmp_path / "hand", epochs) for epochs in (2, 3)]
    for (begin, losses, weights), (reference_begin, reference_losses, reference_weights) in zip(
        [each for broadcast in found for each in broadcast],
        [each for run in expected for each in run],
        strict=True,
    ):
        assert begin == reference_begin
        assert losses == pytest.approx(reference_losses, rel=1e-5)
        assert weights == pytest.approx(reference_weights, rel=1e-4, abs=1e-4)
    assert [0, 0, 2, 2] == [begin for broadcast in found for begin, *_ in broadcast]
    assert found[1][0][1][-1] < found[0][0][1][0]
