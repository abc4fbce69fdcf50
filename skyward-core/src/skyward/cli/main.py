"""
Read what is typed after `sky`, and do it.

Nothing is loaded that the command at hand has no use for: `sky --version` loads no more than this.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from skyward.cli.terminal import complain, say, say_json
from skyward.errors import ConfigError, SkywardError, UsageError
from skyward.plain import plain_line

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
        case [] | ["help"] | ["help", "--json"] | ["-h" | "--help", *_]:
            _list_commands(as_json="--json" in words)
        case ["-V" | "--version" | "version", *rest]:
            _say_version(as_json="--json" in rest)
        case ["__complete", *typed]:
            _complete(typed)
        case ["help", name, *_]:
            _parser(name).print_help()
        case [name, *_] if name.startswith("-"):
            raise UsageError(f"sky has no option {name!r}.", hint="Type: sky help")
        case [name, *rest]:
            return _find(name).run(_parser(name).parse_args(rest)) or DONE
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
    from skyward.cli.known_commands import ANSWERED
    from skyward.model.fields.setting import nearest
    from skyward.registry import installed

    known = installed().commands
    if name in known:
        return known[name]
    close = nearest(name, {*known, *ANSWERED})
    raise UsageError(f"sky has no command {name!r}.", hint=f"Did you mean {close!r}?" if close else "Type: sky help")


def _parser(name: str) -> ArgumentParser:
    from skyward.cli.command_parser import command_parser

    return command_parser(name, _find(name))


def _complete(typed: list[str]) -> None:
    """Print what a shell may put in the place of the last word: a candidate in each line, a tab, and what it is."""
    from skyward.cli.candidates import candidates

    for word, about in candidates(typed):
        say(f"{plain_line(word)}\t{plain_line(about)}" if about else plain_line(word))


def _say_version(*, as_json: bool) -> None:
    from skyward.cli.namesake import NOTE, skypilot_is_installed

    if as_json:
        say_json({"program": "skyward", "skyward-core": _version(), "skypilot": skypilot_is_installed()})
        return
    say(f"skyward-core {_version()}")
    if skypilot_is_installed():
        say(NOTE)


def _list_commands(*, as_json: bool) -> None:
    from skyward.cli.known_commands import ANSWERED, summaries
    from skyward.cli.namesake import NOTE, skypilot_is_installed
    from skyward.cli.terminal import table

    rows = sorted({**summaries(), **ANSWERED}.items())
    if as_json:
        listed = [{"name": name, "summary": summary} for name, summary in rows]
        say_json({"skyward-core": _version(), "commands": listed})
        return
    note = f"\n{NOTE}\n" if skypilot_is_installed() else ""
    say(f"usage: sky COMMAND ...\n\nskyward {_version()}\n{note}\ncommands:\n{table(rows)}")
