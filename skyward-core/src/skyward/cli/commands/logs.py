"""`sky logs`: what happened to a pool and what its functions printed, as the pool stored it on this computer."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from skyward.cli.terminal import complain, say, table
from skyward.errors import UsageError
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.plan.logs.stored_pool import StoredPool

HEADER = ("POOL", "ID", "BEGAN", "LASTED", "STATE", "PROVIDER", "WHAT")


def arguments(parser: ArgumentParser) -> None:
    """Add which pool is meant, and what of its log."""
    parser.add_argument(
        "pool", nargs="?", metavar="POOL", help="a pool's name or id, or how it begins; else the newest"
    )
    parser.add_argument("-f", "--follow", action="store_true", help="go on until the pool has ended")
    parser.add_argument("--node", type=int, metavar="N", help="only what concerns this node")
    parser.add_argument("--task", metavar="ID", help="only what concerns this call, as events name it")
    parser.add_argument("--since", metavar="TIME", help="only what is newer: 10m, 2h, or a date as 2026-03-01T12:00")
    parser.add_argument("-n", "--tail", type=int, metavar="LINES", help="only the last so many lines of what there is")
    parser.add_argument("--list", action="store_true", help="list the pools that have a log")
    parser.add_argument("--path", action="store_true", help="print where the log is")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line, for programs")


def run(options: Namespace) -> int:
    """
    Print a log, or list those there are.

    Raises:
        UsageError: If a number or a time makes no sense.
        SkywardError: If there is no such pool.
    """
    from skyward.engine.logs.log_folder import stored_pools
    from skyward.plan.logs.log_choice import LogChoice, moment
    from skyward.plan.logs.stored_pool import chosen

    if options.tail is not None and options.tail < 0:
        raise UsageError(f"--tail takes a number of lines, not {options.tail}.")
    since = None if options.since is None else moment(options.since, time.time())
    pools = stored_pools()
    if options.list:
        return _list(pools, as_json=options.json)
    pool = chosen(pools, options.pool)
    if options.path:
        say(pool.path)
        return 0
    _print(pool, LogChoice(node=options.node, task=options.task, since=since), options)
    return 0


def _print(pool: StoredPool, choice: object, options: Namespace) -> None:
    from skyward.cli.log_text import as_json, as_text
    from skyward.engine.logs.log_folder import LOCKS
    from skyward.engine.logs.log_reader import LogReader

    reader = LogReader(Path(pool.path), complain=complain)
    put = as_json if options.json else as_text

    def lines(*, following: bool) -> Iterator[str]:
        found = reader.follow(lambda: not LOCKS.held(pool.id)) if following else reader.read()
        return (line for each in found if choice.wants(each) for line in put(each, choice))  # type: ignore[attr-defined, arg-type]

    if options.tail is not None:
        for line in deque(lines(following=False), maxlen=options.tail):
            say(line)
    if options.tail is None or options.follow:
        for line in lines(following=options.follow):
            say(line)
    if reader.unreadable:
        complain(f"{reader.unreadable} lines of {pool.path} are damaged, and passed over.")


def _list(pools: list[StoredPool], *, as_json: bool) -> int:
    from skyward.model.fields.span import span

    if as_json:
        say(json.dumps([_facts(pool) for pool in pools], indent=2))
        return 0
    now = time.time()
    rows = [
        (
            pool.name,
            pool.id,
            time.strftime("%Y-%m-%d %H:%M", time.localtime(pool.began)),
            "?" if pool.state == "died" else span((pool.ended or now) - pool.began),
            pool.state,
            pool.provider,
            pool.what,
        )
        for pool in pools
    ]
    say(table([HEADER, *rows], indent="") if rows else "No pool has a stored log here.")
    return 0


def _facts(pool: StoredPool) -> dict[str, object]:
    names = ("id", "name", "began", "ended", "state", "reason", "provider", "what", "host", "process", "path")
    return {name: getattr(pool, name) for name in names}


COMMAND = Command(run, summary="Show what happened to a pool and what its functions printed.", arguments=arguments)
