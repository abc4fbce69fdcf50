"""
The side of the keeper that a node's plugins are on.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from skyward import InstanceInfo, PluginError
from skyward.node.agent.descendants import MARK, OUTLIVES

__all__ = ["kept"]


@contextmanager
def kept(profile: str, info: InstanceInfo) -> Iterator[list[str]]:
    """
    Cut the GPUs of this machine, and return the name of each rank's slice.

    Args:
        profile: The profile.
        info: The node.

    Raises:
        PluginError: If they cannot be cut, or not put together again.
    """
    # What ends a node's processes leaves this one to its work.
    env = {name: value for name, value in os.environ.items() if name != MARK} | {OUTLIVES: "1"}
    command = [sys.executable, "-P", "-m", "skyward_mig.keeper", profile, str(info.workers_per_node)]
    keeper = subprocess.Popen(
        command,
        env=env,
        cwd=os.sep,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    with keeper:
        answer = _read(keeper.stdout.readline())
        if "devices" in answer:
            yield answer["devices"]
            keeper.stdin.close()
            answer = _read(keeper.stdout.readline())
        keeper.stdin.close()
        if "error" in answer or keeper.wait():
            raise PluginError(
                f"mig on node {info.node}: {answer.get('error') or 'the process that keeps the GPUs cut has died.'}",
                plugin="mig",
                hook="around_app",
                hint=answer.get("hint"),
            )


def _read(line: bytes) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(line)
    except ValueError:
        return {}
    return answer
