"""
Open files do not travel: a node has neither the file nor the place in it.
"""

from __future__ import annotations

import io
import sys
from typing import Any

__all__ = ["refuse_file"]


def refuse_file(obj: Any) -> None:
    """
    Raise for an open text file, of which cloudpickle would send all that is in it; binary ones it refuses itself.

    `sys.stdout` and `sys.stderr` travel by name: on a node they are the node's.

    Args:
        obj: Anything.

    Raises:
        TypeError: It is an open file.

    >>> import os
    >>> with open(os.devnull) as file:
    ...     refuse_file(file)
    Traceback (most recent call last):
    TypeError: cannot pickle '_io.TextIOWrapper' object
    """
    if type(obj) is io.TextIOWrapper and obj is not sys.stdout and obj is not sys.stderr:
        raise TypeError("cannot pickle '_io.TextIOWrapper' object")
