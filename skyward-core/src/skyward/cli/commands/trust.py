"""`sky trust`: a file that describes pools may say where calls go, what logs in and what is run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from skyward.cli.terminal import say
from skyward.model.cli_command import Command


def arguments(parser: ArgumentParser) -> None:
    """Add which file is meant."""
    parser.add_argument("file", nargs="?", metavar="FILE", help="a skyward.toml, if not the nearest")
    parser.add_argument("--yes", action="store_true", help="trust it without asking")


def run(options: Namespace) -> int:
    """
    Show what a file wants, and record that it may have it, after asking.

    Raises:
        ConfigError: If there is no such file.
        UsageError: If standard input is not a terminal, so that the question cannot be answered.
    """
    from skyward.cli.machines import agreed
    from skyward.engine.pool.pool_file import read_pool_file
    from skyward.engine.pool.pool_file_trust import is_trusted, reasons, trust

    path, text = read_pool_file(options.file)
    wanted = reasons(path, text)
    if not wanted:
        say(f"{path} wants nothing that needs trust.")
        return 0
    say(f"{path} wants:")
    for each in wanted:
        say(f"  {each}")
    if is_trusted(path, text):
        say("It is trusted already.")
        return 0
    if not options.yes and not agreed("trust it", "Trust it, until it is changed?"):
        say("It is not trusted.")
        return 1
    trust(path, text)
    say("It is trusted until it is changed.")
    return 0


COMMAND = Command(run, summary="Trust a skyward.toml with addresses, keys and commands.", arguments=arguments)
