"""`sky down`: machines are ended, whoever rented them."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace

from skyward.cli.machines import add_choice, agreed, ask_clouds, complain_of, nothing_of
from skyward.cli.terminal import complain, say, table
from skyward.errors import UsageError
from skyward.model.command import Command


def arguments(parser: ArgumentParser) -> None:
    """Add what machines are chosen by."""
    add_choice(parser)
    parser.add_argument("--all", action="store_true", help="all machines of all pools, also of other people's")
    parser.add_argument("--yes", action="store_true", help="end them without asking")


def run(options: Namespace) -> int:
    """
    End machines, after asking.

    Raises:
        UsageError: If nothing says which.
    """
    from skyward.engine.loop import engine_loop
    from skyward.market.owned import end
    from skyward.plan.owned import HEADER, row

    if not (options.pools or options.expired or options.all):
        raise UsageError("Nothing says which machines to end.", hint="Name a pool, or write --expired or --all.")
    owned, found = ask_clouds(options)
    if not found:
        if not owned.failures:
            say(nothing_of(owned, "machine"))
        return complain_of(owned.failures)
    now = time.time()
    say(table([HEADER, *(row(instance, now=now) for _, instance in found)], indent=""))
    machines = "this machine" if len(found) == 1 else f"these {len(found)} machines"
    if not options.yes and not agreed("end them", f"End {machines}, and lose what runs there?"):
        say("Nothing was ended.")
        return 1
    failures = engine_loop().run(end(found))
    ended = [instance.id for handle, instance in found if handle.name not in failures]
    if ended:
        say(f"Ended {', '.join(ended)}.")
    for name, error in failures.items():
        complain(f"{name} may not have ended all, and what is left goes on being billed: {error}")
    return complain_of(owned.failures) or int(bool(failures))


COMMAND = Command(run, summary="End machines of pools, whoever rented them.", arguments=arguments)
