"""`sky cost`: what was spent, by the receipts that pools left on this computer."""

from __future__ import annotations

import json
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from skyward.cli.terminal import complain, say, table
from skyward.model.cli_command import Command

if TYPE_CHECKING:
    from skyward.plan.logs.spending import Spent, SpentRow
    from skyward.plan.logs.stored_pool import StoredPool

BY = ("day", "pool", "provider")

PLAY_MONEY = "rehearsal"
"""The provider whose machines are this one, and cost nothing."""


def arguments(parser: ArgumentParser) -> None:
    """Add what is added up, and from when on."""
    parser.add_argument("--by", choices=BY, default="day", help="what makes a row; days if left out")
    parser.add_argument(
        "--since", metavar="TIME", help="only what was spent since then: 7d, 12h, or a date as 2026-03-01"
    )
    parser.add_argument("--rehearsals", action="store_true", help="count the play money of rehearsals, too")
    parser.add_argument("--json", action="store_true", help="print one JSON value, for programs")


def run(options: Namespace) -> int:
    """
    Add up what pools have cost.

    Raises:
        UsageError: If a time makes no sense.
    """
    from skyward.engine.logs.log_folder import stored_pools
    from skyward.plan.logs.log_choice import moment
    from skyward.plan.logs.spending import summed, within

    now = time.time()
    since = None if options.since is None else moment(options.since, now)
    spent = [one for pool in stored_pools() for one in _spent(pool, now) if one.cost > 0]
    if not options.rehearsals:
        spent = [one for one in spent if one.provider != PLAY_MONEY]
    if since is not None:
        spent = list(within(spent, since))
    rows = summed(spent, options.by)
    if options.json:
        say(json.dumps(_facts(rows, options.by, spent), indent=2))
    else:
        _print(rows, options.by, spent)
    return 0


def _spent(pool: StoredPool, now: float) -> list[Spent]:
    from skyward.engine.logs.log_reader import LogReader
    from skyward.plan.logs.spending import estimated, from_receipts

    known = from_receipts(pool) if pool.receipts else []
    if pool.state in ("ended", "failed", "detached"):
        return known
    # The run that has no receipt; those before it have theirs.
    events = LogReader(Path(pool.path), ("events",), complain=complain).read(pool.run)
    return known + estimated(pool, events, now)


def _print(rows: list[SpentRow], by: str, spent: list[Spent]) -> None:
    from skyward.model.instances.cost_report import money

    if not rows:
        say("Nothing was spent by pools of this computer.")
        return
    ids = by == "pool"
    header = (by.upper(), *(["ID"] if ids else []), *([] if ids else ["POOLS"]), "COST", "SAVED")
    listed = [
        (
            row.label or "?",
            *([row.pool_id or ""] if ids else []),
            *([] if ids else [f"{row.pools:,}"]),
            f"{'~' if row.estimate else ''}{money(row.cost)}",
            money(row.savings) if row.savings else "",
        )
        for row in rows
    ]
    total = sum(one.cost for one in spent)
    estimate = sum(one.cost for one in spent if one.estimate)
    saved = sum(one.savings for one in spent)
    last = (
        "total",
        *[""] * (len(header) - 3),
        f"{'~' if estimate else ''}{money(total)}",
        money(saved) if saved else "",
    )
    say(table([header, *listed, last], indent=""))
    without = len({one.pool_id for one in spent if one.estimate})
    if without:
        several = "a pool that is open or has" if without == 1 else f"{without} pools that are open or have"
        say(f"~ {money(estimate)} of it is an estimate, of {several} no receipt.")


def _facts(rows: list[SpentRow], by: str, spent: list[Spent]) -> dict[str, object]:
    names = ("label", "pool_id", "pools", "cost", "savings", "estimate", "estimated")
    return {
        "by": by,
        "currency": "USD",
        "cost": sum(one.cost for one in spent),
        "savings": sum(one.savings for one in spent),
        "estimate": sum(one.cost for one in spent if one.estimate),
        "rows": [{name: getattr(row, name) for name in names} for row in rows],
    }


COMMAND = Command(run, summary="Show what was spent, by day, pool or provider.", arguments=arguments)
