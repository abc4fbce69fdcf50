"""
Runs the limit, ours and the peers in turn on this machine and prints one table with ratios.

usage: python benchmarks/run.py [--only NAME]... [--quick | --rounds N] [--write docs/performance.md]

Figures are kept in benchmarks/results.json, unless they are quick ones: the page is made of the latest of each subject.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

import attrs
from measure import (
    arrays,
    calls,
    data,
    distance,
    growth,
    idle,
    lines,
    nodes,
    opening,
    plugins,
    pool_log,
    sklearn,
    ssh,
    startup,
    streams,
    training,
    turns,
    wire,
)
from measure.harness import ABSENT, Job, Results, take_turns
from measure.peers import SYSTEMS, installed, version
from measure.stored import Measured, read, to_json, when
from measure.table import Row, markdown, summary

ROUNDS = 3
KEPT = Path(__file__).resolve().parent / "results.json"


@attrs.frozen
class Subject:
    """
    A group of measurements that can be run alone.
    """

    jobs: Callable[[bool], dict[str, Job]]
    rows: Callable[[Results], list[Row]]


SUBJECTS = {
    "calls": Subject(calls.jobs, calls.rows),
    "arrays": Subject(arrays.jobs, arrays.rows),
    "import": Subject(startup.jobs_import, startup.rows_import),
    "startup": Subject(startup.jobs_pool, startup.rows_pool),
    "idle": Subject(idle.jobs, idle.rows),
    "ssh": Subject(ssh.jobs, ssh.rows),
    "distance": Subject(distance.jobs, distance.rows),
    "turns": Subject(turns.jobs, turns.rows),
    "streams": Subject(streams.jobs, streams.rows),
    "data": Subject(data.jobs, data.rows),
    "wire": Subject(wire.jobs, wire.rows),
    "growth": Subject(growth.jobs, growth.rows),
    "lines": Subject(lines.jobs, lines.rows),
    "log": Subject(pool_log.jobs, pool_log.rows),
    "opening": Subject(opening.jobs, opening.rows),
    "sklearn": Subject(sklearn.jobs, sklearn.rows),
    "training": Subject(training.jobs, training.rows),
    "plugins": Subject(plugins.jobs, plugins.rows),
    "nodes": Subject(nodes.jobs, nodes.rows),
}


def machine() -> str:
    """
    Describe this machine and what is installed, without naming it.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    systems = [f"{system} {version(system) if installed(system) else ABSENT}" for system in SYSTEMS]
    python = f"Python {platform.python_version()} ({platform.python_implementation()})"
    return f"{cores} cores, {platform.system()} {platform.machine()}, {python}; {', '.join(systems)}"


def report(results: Results, names: list[str]) -> str:
    """
    Write the tables.
    """
    parts = [summary([row for name in names for row in SUBJECTS[name].rows(results)])]
    if "calls" in names:
        parts.append("Our no-op calls, one by one:")
        parts.append(markdown(["called with", "p50", "rate in flight"], calls.details(results)))
    failed = {name: outcome.failure for name, outcome in results.items() if outcome.failure}
    failed = {name: why for name, why in failed.items() if why != ABSENT}
    if failed:
        parts.append("What failed:")
        parts.append(markdown(["measurement", "why"], [[name, str(why)] for name, why in failed.items()]))
    return "\n\n".join(parts)


def page(report: str, measured: str, *, quick: bool) -> str:
    """
    Write the documentation page around the tables.

    Args:
        report: The tables.
        measured: When that was, and in how many rounds.
        quick: Whether with fewer calls.
    """
    how = "--quick " if quick else ""
    return f"""<!-- Made by `python benchmarks/run.py {how}--write docs/performance.md`; do not edit. -->

# Performance

Measured on {measured}: {machine()}.

Those of a subject were run in turn on the same machine, each measurement in a process of its own, warm, with the same
slots, when nothing else ran there.
Of calls the best of three repetitions counts, of arrays the first round trip and the median of those after it;
the table shows the median over the rounds, of a call's time the mean over the pools of all rounds.
Ratios are what to compare; the values only say what was seen once on this machine.
*Limit* is the least that any such system does, measured by the scripts in `benchmarks/limits/`:
a bare chain of three processes for calls, two writes into shared memory for arrays, and over SSH the same chain with
a bare asyncssh channel in it.
Ours is the worst of several ways to call, which the table names; the peers are measured with the plainest only.
What is far away is a real SSH server on the same machine, behind a proxy that delays and throttles;
the peers, which cannot be put behind it, are measured at no distance.
A plugin is measured in the worker, a call in each task; those that the table does not name are not around tasks.

{report}
"""


def main() -> int:
    """
    Run what was asked for; fail when something could not be measured.
    """
    parser = argparse.ArgumentParser(description="Measure the limit, ours and the peers side by side.")
    parser.add_argument("--only", choices=SUBJECTS, action="append", help="run one subject; may be given again")
    parser.add_argument("--quick", action="store_true", help="one round and fewer calls")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"how often all take their turn; {ROUNDS} if left out"
    )
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the page to this file too")
    options = parser.parse_args()
    if options.quick and options.only and options.write:
        parser.error("--quick --write needs all subjects: leave out --only")
    names = options.only or list(SUBJECTS)
    rounds = 1 if options.quick else options.rounds
    kept = {} if options.quick else read(KEPT, machine())
    results = {}
    for name in names:
        found = take_turns(
            SUBJECTS[name].jobs(options.quick), rounds, lambda line: print(line, file=sys.stderr, flush=True)
        )
        results.update(found)
        kept[name] = Measured(dt.datetime.now(tz=dt.UTC).date().isoformat(), rounds, found)
        if not options.quick:
            KEPT.write_text(to_json(machine(), kept), encoding="utf-8")
    print(f"{machine()}\n\n{report(results, names)}")
    if options.write:
        shown = [name for name in SUBJECTS if name in kept]
        everything = {job: outcome for name in shown for job, outcome in kept[name].results.items()}
        text = page(report(everything, shown), when(kept, shown), quick=options.quick)
        options.write.write_text(text, encoding="utf-8")
    return any(outcome.failure not in {None, ABSENT} for outcome in results.values())


if __name__ == "__main__":
    sys.exit(main())
