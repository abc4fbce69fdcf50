"""
Core's own commands: each module of this folder is one, with its name and a `COMMAND`.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from skyward.model.cli_command import Command


def names() -> frozenset[str]:
    """
    List the commands.

    >>> "clean" in names()
    True
    """
    return frozenset(module.name.replace("_", "-") for module in iter_modules(__path__))


def command(name: str) -> Command:
    """
    Load a command.

    Args:
        name: One of `names`.
    """
    module = name.replace("-", "_")
    found: Command = import_module(f"{__name__}.{module}").COMMAND
    return found
