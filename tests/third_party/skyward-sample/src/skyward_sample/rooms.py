"""
A command of `sky` that lists the pools which have machines.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

import skyward as sky
from skyward.hookspecs import Command


def _arguments(parser: ArgumentParser) -> None:
    """Add the place to look at."""
    parser.add_argument("directory", metavar="DIRECTORY", type=Path)


def _run(options: Namespace) -> None:
    """List what is in the place."""
    if not options.directory.is_dir():
        raise sky.ConfigError(f"There is no directory {str(options.directory)!r}.")
    for room in sorted(options.directory.iterdir()):
        sys.stdout.write(f"{room.name}\n")


rooms = Command(_run, summary="List the rooms of the sample cloud.", arguments=_arguments)
