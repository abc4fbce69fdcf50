"""`sky stacks`: where the workers of pools are that programs of this user have open on this machine."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from skyward.cli.terminal import complain, say
from skyward.model.cli_command import Command


def arguments(parser: ArgumentParser) -> None:
    """Add which pool and node are meant."""
    parser.add_argument("pool", nargs="?", metavar="POOL", help="the pool's name or id, if not all")
    parser.add_argument("--node", type=int, metavar="N", help="the only node to ask")


def run(options: Namespace) -> int:
    """Print the stacks; fail if there is no such pool."""
    from skyward.engine.pool.asked_pools import ask_pools

    answers = ask_pools(options.pool, options.node)
    for name, text in answers.items():
        say(f"{name}:\n{text or 'It has no workers yet.'}")
    if not answers:
        named = f" named {options.pool!r}" if options.pool else ""
        complain(f"no program of yours on this machine has a pool{named} open.")
    return 0 if answers else 1


COMMAND = Command(run, summary="Show where the workers of an open pool are, when a call hangs.", arguments=arguments)
