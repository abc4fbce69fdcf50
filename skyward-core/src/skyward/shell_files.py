"""
The shell scripts that run on machines: files beside the modules that render them, so that shellcheck reads them.

A `@WORD@` in one is filled in.
"""

from __future__ import annotations

import pkgutil
import re
from functools import cache

__all__ = ["shell_file"]

_WORD = re.compile("@([A-Z][A-Z0-9_]*)@")


def shell_file(package: str, name: str, **words: str) -> str:
    """
    Return a script, or a piece of one, without its first line and the end of the last.

    Args:
        package: The package that it lies in, which is `__package__` beside it.
        name: Its file's name.
        words: What is filled in.

    Raises:
        KeyError: If it has a word that is not given.
        FileNotFoundError: If there is no such file.

    >>> print(shell_file("skyward.plan.bootstrap", "remove_node.sh", CALL=".in").splitlines()[-3])
    rm -rf "$node" "$node.in"
    """
    return _WORD.sub(lambda found: words[found[1]], _text(package, name))


@cache
def _text(package: str, name: str) -> str:
    """Read a script, less what only tools look at."""
    data = pkgutil.get_data(package, name)
    assert data is not None
    lines = data.decode().rstrip("\n").split("\n")
    return "\n".join(line for line in lines if not line.lstrip().startswith(("#!", "# shellcheck ")))
