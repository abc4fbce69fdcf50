"""`sky top`: the nodes and calls of the pools that programs of this user have open on this machine."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from skyward.cli.terminal import add_json, complain, say, say_json
from skyward.errors import SkywardError, UsageError
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.engine.pool.asked_pools import PoolAnswer

INTERVAL = 2.0
"""Seconds between two looks."""

# From the first cell of the screen on, whatever was there before goes.
_CLEAR = "\x1b[H\x1b[J"


def arguments(parser: ArgumentParser) -> None:
    """Add which pool is meant, and how it is shown."""
    parser.add_argument("pool", nargs="?", metavar="POOL", help="the pool's name or id, if not all")
    parser.add_argument(
        "--interval", type=float, default=INTERVAL, metavar="SECONDS", help=f"between looks; {INTERVAL:g}"
    )
    parser.add_argument("--once", action="store_true", help="show it once, as it is done without a terminal")
    add_json(parser)


def run(options: Namespace) -> int:
    """
    Show the pools, again and again on a terminal, until the program is interrupted or the pools are gone.

    Raises:
        UsageError: If the interval is none.
        SkywardError: If there is no pool of that name.
    """
    if not options.interval > 0:
        raise UsageError(f"--interval must be above 0, not {options.interval:g}.")
    once = options.once or options.json or not sys.stdout.isatty()
    answers = _asked(options.pool)
    while not once and answers:
        sys.stdout.write(_CLEAR)
        _show(answers)
        sys.stdout.flush()
        time.sleep(options.interval)
        answers = _asked(options.pool)
    if options.json:
        failures = {answer.pool_id: answer.error for answer in answers if answer.error}
        say_json({"pools": [answer.facts for answer in answers if answer.facts], "failures": failures})
        return int(bool(failures)) or int(bool(options.pool) and not answers)
    if not answers and options.pool:
        raise _unknown(options.pool)
    if not answers:
        say("No program of yours on this machine has a pool open.")
        return 0
    return _show(answers)


def _asked(pool: str | None) -> list[PoolAnswer]:
    from skyward.engine.pool.asked_pools import ask_each

    # One of another version of Skyward answers something else.
    return [answer for answer in ask_each("facts", pool) if answer.error or "nodes" in answer.facts]


def _show(answers: list[PoolAnswer]) -> int:
    """Print what pools say, and return the exit code."""
    from skyward.cli.open_pool_table import shown

    if pools := [answer.facts for answer in answers if answer.facts]:
        say(shown(pools, now=time.time()))
    silent = [answer for answer in answers if answer.error]
    for answer in silent:
        complain(f"{answer.pool_id}: {answer.error}")
    return int(bool(silent))


def _unknown(pool: str) -> SkywardError:
    from skyward.engine.pool.asked_pools import ask_each
    from skyward.model.fields.setting import nearest

    close = nearest(pool, [str(answer.facts["pool"]) for answer in ask_each("facts") if answer.facts])
    return SkywardError(
        f"No program of yours on this machine has a pool {pool!r} open.",
        hint=f"Did you mean {close!r}?" if close else "Type: sky top",
    )


COMMAND = Command(run, summary="Show nodes and calls of the pools that are open on this machine.", arguments=arguments)
