"""A script of the user's, run on a node as a program of its own: what `sky run` sends there."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from types import MappingProxyType

__all__ = ["run_script"]

NONE: Mapping[str, str] = MappingProxyType({})


def run_script(name: str, source: bytes, words: Sequence[str], variables: Mapping[str, str] = NONE) -> int:
    """
    Run a script with the node's interpreter, in a folder of its own, and return its exit code.

    What it prints is shown line by line, as that of any call; it is ended with the call.

    Args:
        name: The script's file name.
        source: Its content.
        words: What is typed after it.
        variables: What its environment has besides that of the node.
    """
    with tempfile.TemporaryDirectory(prefix="script-") as folder:
        path = os.path.join(folder, os.path.basename(name))
        with open(path, "wb") as file:
            file.write(source)
        command = [sys.executable, "-u", path, *words]
        env = {**os.environ, **variables}
        return subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, check=False).returncode
