"""Lines beside the program's own bars of tqdm: above them, and never in the middle of one."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

__all__ = ["beside_bars"]


def beside_bars(stream: object) -> AbstractContextManager[Any]:
    """
    Clear the bars of this program while lines are written, and draw them again below.

    Without tqdm, which is never imported here, it does nothing.

    Args:
        stream: Where the lines are written.
    """
    kind = getattr(sys.modules.get("tqdm.std"), "tqdm", None)
    clear = getattr(kind, "external_write_mode", None)
    if clear is None or not getattr(kind, "_instances", None):
        return nullcontext()
    cleared: AbstractContextManager[Any] = clear(file=stream)
    return cleared
