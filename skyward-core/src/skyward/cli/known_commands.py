"""The commands that there are, with what each does; distributions that bring none are not loaded for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skyward.model.cli_command import Command

HOOK = "skyward_commands"

ANSWERED: Mapping[str, str] = {
    "help": "List the commands, or show how one is typed: sky help COMMAND",
    "version": "Show the version, as --version does.",
}
"""What `sky` answers before it looks for any command."""


def summaries() -> Mapping[str, str]:
    """
    Return what each command does, by name.

    >>> summaries()["ls"]
    'List the machines of all pools, as the clouds list them.'
    """
    from skyward.cli.commands import command, names

    own = {name: command(name).summary for name in names()}
    return {**own, **{name: command.summary for name, command in others().items()}}


def others() -> Mapping[str, Command]:
    """Return all commands, if an installed distribution may bring some, judged by the text of its module; else none."""
    from importlib.metadata import entry_points

    from skyward.hook_callers import GROUP

    if not any(_mentions(point.module) for point in entry_points(group=GROUP)):
        return {}
    from skyward.registry import installed

    return installed().commands


def _mentions(module: str) -> bool:
    from importlib.util import find_spec

    try:
        # Of a module in a package the package is loaded, which is where most distributions register.
        spec = find_spec(module)
        if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
            return True
        with open(spec.origin, encoding="utf-8") as file:
            return HOOK in file.read()
    except (ImportError, OSError, ValueError):
        return True
