"""The client library, loaded on every Python that nodes have."""

from __future__ import annotations

import asyncio
import sys
from importlib.util import find_spec
from types import ModuleType

__all__ = ["load_library"]

_NEEDED = "async_timeout"


def load_library() -> None:
    """
    Load the library, also where a package is missing that it needs before Python 3.11.3 for its asynchronous side.

    The package is a dependency of the client's environment, whose Python may be a newer one of the same minor version
    than that of its nodes; `asyncio.timeout` does the same.
    """
    if sys.version_info >= (3, 11, 3) or "valkey" in sys.modules or find_spec(_NEEDED) is not None:
        import valkey  # it is loaded for its callers

        return
    stand_in = ModuleType(_NEEDED)
    stand_in.__dict__["timeout"] = asyncio.timeout
    sys.modules[_NEEDED] = stand_in
    try:
        import valkey  # noqa: F401
    finally:
        # What else asks for it is answered as before.
        del sys.modules[_NEEDED]
