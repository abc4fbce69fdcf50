"""`sky run`: a script on the head node of a pool, with or without this program."""

from __future__ import annotations

import argparse
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from skyward.cli.terminal import complain, say
from skyward.errors import UsageError
from skyward.model.cli_command import Command


def arguments(parser: ArgumentParser) -> None:
    """Add which script runs where, and for how long without this program."""
    parser.add_argument("--pool", required=True, metavar="POOL", help="a pool of skyward.toml")
    parser.add_argument("--detach", action="store_true", help="leave it as soon as it runs; sky attach goes on with it")
    parser.add_argument("--lease", type=float, metavar="SECONDS", help="when its machine ends, whatever runs there")
    parser.add_argument("--idle", type=float, metavar="SECONDS", help="when it ends after the script has, if sooner")
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a variable that the script has too, with the value that it has here",
    )
    parser.add_argument("script", metavar="SCRIPT", help="the file")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="what is typed after it")


def run(options: Namespace) -> int:
    """
    Run a script; print the pool's id if it is left, and return the script's exit code if it is not.

    Raises:
        UsageError: If there is no such file or variable, or a time is given for a pool that is not left.
    """
    from skyward.function import function
    from skyward.node.task.script import run_script
    from skyward.pool import Pool

    if not options.detach and (options.lease, options.idle) != (None, None):
        raise UsageError("--lease and --idle say when a pool ends that is left.", hint="Write --detach as well.")
    path = Path(options.script)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"The script {path} cannot be read: {error.strerror}.") from error
    variables = dict(map(_variable, options.env))
    with Pool(name=options.pool) as pool:
        call = pool.run_async(function(run_script)(path.name, source, tuple(options.words), variables), target="head")
        if options.detach:
            name = pool.detach(lease=options.lease, idle=options.idle)
            complain(f"{path.name} runs without this program. To go on with it: sky attach {name}")
            say(name)
            return 0
        return call.result()


def _variable(written: str) -> tuple[str, str]:
    """Return a variable and its value, which is that of this program if none is written."""
    name, given, value = written.partition("=")
    if given and name:
        return name, value
    if name not in os.environ:
        raise UsageError(f"--env {written}: this program has no such variable.", hint="Write NAME=VALUE, or export it.")
    return name, os.environ[name]


COMMAND = Command(run, summary="Run a script on the head node of a pool, and leave it there.", arguments=arguments)
