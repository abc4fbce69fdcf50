"""`sky ls`: the machines there are, as the clouds list them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from skyward.cli.machines import add_choice, ask_clouds, complain_of, complain_of_none, waiting_until
from skyward.cli.terminal import say, table
from skyward.model.cli_command import Command


def arguments(parser: ArgumentParser) -> None:
    """Add what machines are chosen by."""
    add_choice(parser)


def run(options: Namespace) -> int:
    """List the machines; fail if a cloud cannot be asked, for what it has is not known then."""
    from skyward.cli.instance_table import HEADER, row

    owned, found = ask_clouds(options)
    if found:
        until = waiting_until()
        rows = (row(instance, now=handle.now(), waits=until) for handle, instance in found)
        say(table([HEADER, *rows], indent=""))
    elif not owned.failures:
        return complain_of_none(owned, options.pools)
    return complain_of(owned.failures)


COMMAND = Command(run, summary="List the machines of all pools, as the clouds list them.", arguments=arguments)
