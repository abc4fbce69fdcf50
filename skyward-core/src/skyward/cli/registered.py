"""How core registers its own commands: apart from them, since whatever lists or runs one has no need of hooks."""

from __future__ import annotations

from collections.abc import Mapping

from skyward.cli.commands import command, names
from skyward.hookspecs_distribution import hookimpl
from skyward.model.cli_command import Command


@hookimpl
def skyward_commands() -> Mapping[str, Command]:
    """Register the modules of `cli/commands`."""
    return {name: command(name) for name in sorted(names())}
