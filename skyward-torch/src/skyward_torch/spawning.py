"""
Lets processes that a task starts form a world of their own, as `torch.multiprocessing.spawn` is used.

The variable by which torch learns that a store is there already holds for the task's own process, and for programs that
it runs. A process of multiprocessing chooses a port for its world, where there is no store yet.
"""

from __future__ import annotations

import os
from functools import wraps
from multiprocessing.process import BaseProcess

__all__ = ["VARIABLE", "prepare"]

VARIABLE = "TORCHELASTIC_USE_AGENT_STORE"


def prepare() -> None:
    """Start processes of multiprocessing without torchrun's store in their environment; patched once in a process."""
    original = BaseProcess.start

    @wraps(original)
    def start(self: BaseProcess) -> None:
        before = os.environ.get(VARIABLE)
        if before != str(True):
            original(self)
            return
        os.environ[VARIABLE] = str(False)
        try:
            original(self)
        finally:
            os.environ[VARIABLE] = before

    BaseProcess.start = start  # type: ignore[method-assign]  # the patch itself
