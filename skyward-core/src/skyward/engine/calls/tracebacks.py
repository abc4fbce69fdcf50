"""Tracebacks that end in the user's line, and not in what our own code did for it."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path
from types import TracebackType

from skyward.link.remote_traceback import RemoteTraceback

OURS = f"{Path(__file__).parents[2]}{os.sep}"
"""Where our own code is."""

LIBRARY = tuple(
    f"{place}{os.sep}"
    for place in (Path(os.__file__).parent, sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
)
"""Where Python's own is, and what is installed, which in a virtual environment is elsewhere."""


def end_in_users_code(error: BaseException) -> None:
    """
    Cut off the frames in which our code waited, from an interrupt and from what a function raised on a node.

    Anything else keeps them: it may be a mistake of ours.

    Args:
        error: What a pool is left by; its traceback is changed in place.
    """
    if not isinstance(error, KeyboardInterrupt) and not _from_a_node(error):
        return
    last: TracebackType | None = None
    link = error.__traceback__
    while link is not None:
        # A user's own iterator may run beneath our code, and Python's own library beneath any.
        if not link.tb_frame.f_code.co_filename.startswith((OURS, *LIBRARY)):
            last = link
        link = link.tb_next
    if last is not None and last.tb_next is not None and _is_ours(last.tb_next):
        last.tb_next = None


def _is_ours(link: TracebackType) -> bool:
    return link.tb_frame.f_code.co_filename.startswith(OURS)


def _from_a_node(error: BaseException) -> bool:
    """Return whether the traceback of a node stands at the end of its chain."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        if isinstance(link, RemoteTraceback):
            return True
        seen.add(id(link))
        link = link.__cause__ or link.__context__
    return False
