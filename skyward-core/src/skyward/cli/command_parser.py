"""The parser of one command, whose mistakes are one line each, with the nearest option."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import TYPE_CHECKING, NoReturn

from skyward.errors import UsageError

if TYPE_CHECKING:
    from skyward.model.cli_command import Command

__all__ = ["command_parser"]

_UNKNOWN = "unrecognized arguments: "


def command_parser(name: str, command: Command) -> ArgumentParser:
    """
    Return the parser of a command.

    Args:
        name: What is typed for it.
        command: The command.

    >>> from skyward.model.cli_command import Command
    >>> command_parser("greet", Command(print, summary="Say hello.")).prog
    'sky greet'
    """

    class Parser(ArgumentParser):
        def error(self, message: str) -> NoReturn:
            hint = f"Type: sky help {name}"
            if message.startswith(_UNKNOWN):
                from skyward.model.fields.setting import nearest

                wrong = message.removeprefix(_UNKNOWN).split()[0].partition("=")[0]
                close = nearest(wrong, self.options()) if wrong.startswith("-") else None
                hint = f"Did you mean {close!r}? {hint}" if close else hint
            raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint=hint)

        def options(self) -> tuple[str, ...]:
            """List the options."""
            return tuple(self._option_string_actions)

    parser = Parser(prog=f"sky {name}", description=command.summary, allow_abbrev=False)
    if command.arguments is not None:
        command.arguments(parser)
    return parser
