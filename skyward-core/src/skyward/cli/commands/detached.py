"""`sky detached`: the pools that this user has left, until when they are there, and what they cost."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

from skyward.cli.terminal import add_json, say, say_json, table
from skyward.model.cli_command import Command

HEADER = ("POOL", "ID", "PROVIDER", "MACHINES", "CALLS", "PRICE", "LEFT", "ENDS")


def arguments(parser: ArgumentParser) -> None:
    """Add how the list is printed."""
    add_json(parser)


def run(options: Namespace) -> int:
    """List the pools, as this computer knows them: no cloud is asked."""
    from skyward.cli.json_facts import detached_facts
    from skyward.engine.instances.owner_lock import without_client
    from skyward.model.fields.span import span

    pools = without_client()
    if options.json:
        say_json({"pools": [detached_facts(about) for about in pools]})
        return 0
    now = time.time()
    rows = [
        (
            about.pool_name,
            about.pool_id,
            about.provider,
            str(len(about.machines)),
            str(about.calls),
            f"${about.hourly_rate:.4g}/h",
            f"{span(now - about.since)} ago{', its client died' if about.owned else ''}",
            f"in {span(about.ends_at - now)}" if about.ends_at > now else f"{span(now - about.ends_at)} ago",
        )
        for about in pools
    ]
    say(table([HEADER, *rows], indent="") if rows else "No pool is detached.")
    return 0


COMMAND = Command(
    run, summary="List the pools that you have detached, and until when they are there.", arguments=arguments
)
