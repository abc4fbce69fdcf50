"""`sky completion`: a script by which a shell completes what is typed after `sky`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from skyward.cli.completion_scripts import SCRIPTS
from skyward.model.cli_command import Command


def arguments(parser: ArgumentParser) -> None:
    """Add which shell is meant."""
    parser.add_argument("shell", metavar="SHELL", choices=sorted(SCRIPTS), help=f"one of {', '.join(sorted(SCRIPTS))}")


def run(options: Namespace) -> None:
    """Print the script."""
    sys.stdout.write(SCRIPTS[options.shell])


COMMAND = Command(run, summary="Print what completes commands and names in bash, fish or zsh.", arguments=arguments)
