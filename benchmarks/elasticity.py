"""
Runs an elastic pool over load curves on a virtual clock, beside the best that is possible in hindsight.

usage: python benchmarks/elasticity.py [--write docs] [--decision]

Scheduler, life of the pool and autoscaler are the real ones.
Machines boot in 90 s, cost $2 an hour, and run one call at a time.
With `--write` the table in `elasticity.md` there and the pictures in `elasticity/` are made again.
With `--decision` a decision is timed in a pool of 1,000 nodes, busy and idle.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from statistics import mean, median, quantiles

sys.path.insert(0, str(Path(__file__).parent))

from elastic.hindsight import clairvoyant, least_cost
from elastic.loads import Load, loads
from elastic.picture import picture
from elastic.simulation import FormerSizing, Market, Run, SimulatedPool, simulate

from skyward.model.spec.nodes import Nodes
from skyward.model.spec.options import Options

MARKET = Market()
MOST = 16
BOUNDS = {"from 0": Nodes(min=0, max=MOST), "from 1": Nodes(1, max=MOST)}
MARKS = "<!-- made by benchmarks/elasticity.py -->", "<!-- until here -->"


def lasted(seconds: float) -> str:
    """Return a duration to be read at a glance."""
    return f"{seconds:.0f} s" if seconds < 600 else f"{seconds / 60:.0f} min"


def row(load: Load, kind: str, bounds: Nodes) -> tuple[str, Run, Run]:
    """Return the row of a load in the table, and what it is made of."""
    run = simulate(load, bounds, MARKET)
    best = clairvoyant(load, MARKET, bounds.floor, MOST)
    former = simulate(load, bounds, MARKET, made=FormerSizing) if bounds.floor else None
    fixed = MOST * max(best.ended, load.until) * MARKET.rate / 3600
    cost, least = run.cost(MARKET), least_cost(load, MARKET, bounds.floor)
    p95 = quantiles(run.waits, n=20)[-1]
    cells = [
        load.name,
        kind,
        f"${cost:.2f}",
        f"${former.cost(MARKET):.2f}" if former is not None else "-",
        f"${best.cost(MARKET):.2f}",
        f"${least:.2f}",
        f"${fixed:.2f}",
        f"{lasted(mean(run.waits))}, {lasted(p95)}",
        f"{lasted(mean(former.waits))}" if former is not None else "-",
        lasted(mean(best.waits)),
    ]
    return f"| {' | '.join(cells)} |", run, best


def table() -> tuple[str, dict[str, str]]:
    """Return the table, and the pictures by their names."""
    lines = [
        (
            "| load | size | cost | before | in hindsight | at least | always 16 | "
            "waits: mean, 95 % | before | in hindsight |"
        ),
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    pictures = {}
    for load in loads():
        for kind, bounds in BOUNDS.items():
            line, run, best = row(load, kind, bounds)
            lines.append(line)
            if not bounds.floor:
                pictures[load.name] = picture(f"{load.name}: {load.said}", run, best, MOST)
    return "\n".join(lines), pictures


def write(docs: Path) -> None:
    """Make table and pictures again."""
    made, pictures = table()
    page = docs / "elasticity.md"
    begin, end = MARKS
    text = page.read_text(encoding="utf-8")
    before, after = text[: text.index(begin)], text[text.index(end) :]
    page.write_text(f"{before}{begin}\n\n{made}\n\n{after}", encoding="utf-8")
    for name, drawn in pictures.items():
        (docs / "elasticity" / f"{name}.svg").write_text(drawn, encoding="utf-8")


def decision(nodes: int = 1000) -> None:
    """Time a decision in a large pool."""
    for calls in (0, nodes // 2, 100 * nodes):
        bounds = Nodes(nodes, min=1, max=2 * nodes)
        pool = SimulatedPool(Load("large", "", (), 0.0), bounds, MARKET, Options())
        pool.fill(nodes, calls)
        took = []
        for _ in range(200):
            pool.engine.now += 1.0
            began = time.perf_counter()
            pool.sizing.decide()
            took.append(time.perf_counter() - began)
        print(
            f"{nodes} nodes, {calls} calls: a decision takes {median(took) * 1e3:.2f} ms, {max(took) * 1e3:.2f} at most"
        )


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, help="folder of the pages")
    parser.add_argument("--decision", action="store_true", help="time a decision")
    given = parser.parse_args()
    if given.decision:
        decision()
    elif given.write:
        write(given.write)
    else:
        print(re.sub(r" \|$", " |", table()[0], flags=re.MULTILINE))


if __name__ == "__main__":
    main()
