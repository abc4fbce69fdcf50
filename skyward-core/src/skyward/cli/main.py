"""
Read what is typed after `sky`, and do it.

Nothing is loaded that the command at hand has no use for: `sky --version` loads no more than this.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from skyward.cli.terminal import complain, say
from skyward.errors import ConfigError, SkywardError, UsageError

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from skyward.model.cli_command import Command

DONE, FAILED, MISTYPED, INTERRUPTED = 0, 1, 2, 130
"""What the program ends with."""


def main(words: Sequence[str] | None = None) -> int:
    """
    Run the command, and return the exit code.

    Args:
        words: What is typed after `sky`; None is what was.
    """
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: complain(str(message))
        try:
            code = _do(list(sys.argv[1:] if words is None else words))
            sys.stdout.flush()
        except ConfigError as error:
            complain(str(error))
            return MISTYPED
        except SkywardError as error:
            complain(str(error))
            return FAILED
        except KeyboardInterrupt:
            complain("interrupted.")
            return INTERRUPTED
        except BrokenPipeError:
            # The reader has closed the pipe; the interpreter is not to find the same when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
    return code


def _do(words: list[str]) -> int:
    match words:
        case [] | ["help"] | ["-h" | "--help", *_]:
            _list_commands()
        case ["-V" | "--version" | "version", *_]:
            say(f"skyward-core {_version()}")
        case ["help", name, *_]:
            _parser(name, _find(name)).print_help()
        case [name, *_] if name.startswith("-"):
            raise UsageError(f"sky has no option {name!r}.", hint="Type: sky help")
        case [name, *rest]:
            command = _find(name)
            return command.run(_parser(name, command).parse_args(rest)) or DONE
    return DONE


def _version() -> str:
    from skyward import __version__

    return __version__


def _find(name: str) -> Command:
    """
    Find a command; core's own are found without loading what is installed.

    Raises:
        UsageError: If there is none; the nearest is offered.
    """
    from skyward.cli.commands import command, names

    if name in names():
        return command(name)
    from skyward.model.fields.setting import nearest
    from skyward.registry import installed

    known = installed().commands
    if name in known:
        return known[name]
    close = nearest(name, {*known, "help"})
    raise UsageError(f"sky has no command {name!r}.", hint=f"Did you mean {close!r}?" if close else "Type: sky help")


def _parser(name: str, command: Command) -> ArgumentParser:
    from argparse import ArgumentParser

    class Parser(ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint=f"Type: sky help {name}")

    parser = Parser(prog=f"sky {name}", description=command.summary, allow_abbrev=False)
    if command.arguments is not None:
        command.arguments(parser)
    return parser


def _list_commands() -> None:
    from skyward.cli.known_commands import summaries
    from skyward.cli.terminal import table

    rows = sorted({**summaries(), "help": "List the commands, or show how one is typed: sky help COMMAND"}.items())
    say(f"usage: sky COMMAND ...\n\nskyward {_version()}\n\ncommands:\n{table(rows)}")
