"""Distributions of third parties, installed into an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(command: Sequence[str | Path], folder: Path, **variables: str) -> str:
    """Run a command away from the checkout, and return what it prints."""
    environment = {name: text for name, text in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=environment | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def installed(folder: Path, source: Path) -> Path:
    """
    Build core and a distribution, install both by file into a fresh environment, and return its interpreter.

    The package index is asked for their dependencies and uv only: it knows other programs by names like ours.
    """
    wheels = folder / "wheels"
    for each in (ROOT / "skyward-core", source):
        run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", wheels, each], folder)
    run([sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, folder / "venv"], folder)
    python = folder / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python]
    run([*install, "--no-deps", "--no-index", *sorted(wheels.glob("*.whl"))], folder)
    run([*install, "asyncssh", "attrs", "cloudpickle", "pluggy", "pytest>=8.4", "rich", "uv", "valkey"], folder)
    run([sys.executable, "-m", "uv", "pip", "check", "--quiet", "--python", python], folder)
    return python
