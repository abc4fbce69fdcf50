"""GPUs of this machine, which are not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.nvidia.machine import Gpus


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Gpus]:
    """Give this machine GPUs."""

    def give(*models: str, virtual: bool = False, without: str = "") -> Gpus:
        gpus = Gpus(tmp_path / "bin", tmp_path / "nvidia", *models, virtual=virtual, without=without)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("SKYWARD_CACHE", str(tmp_path / "cache"))
        return gpus

    return give
