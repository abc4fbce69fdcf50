"""
What an agent costs while nothing is asked of it.

usage: python -m measure.idle
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from measure.harness import Job, Results, answer, module, number
from measure.memory import fields, proportional, tree
from measure.peers import open_system
from measure.table import Criterion, Row, mebibytes, percent

AGENT = b"skyward.node.agent.agent_main"
WATCHED_S = 5.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def one() -> int:
    return 1


def agents() -> list[int]:
    """
    Find the agents that this process has started.
    """
    found = []
    for pid in tree(os.getpid()):
        try:
            if AGENT in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


def cpu_seconds(pid: int) -> float:
    """
    Read the CPU time that a process has used: by its run time in nanoseconds where the kernel tells, else in ticks.
    """
    times = [task.read_text().split()[0] for task in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    if times and any(spent != "0" for spent in times):
        return sum(map(int, times)) / 1e9
    stat = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(stat[11]) + int(stat[12])) / TICKS_PER_S


def measure() -> dict[str, float]:
    """
    Watch the one agent of a pool that has done some work and has none now.
    """
    with open_system("Skyward", nodes=1, slots=2) as face:
        handle = face.prepare(one)
        for _ in range(100):
            face.call(handle)
        # What the agent does after its last task is work, not idling.
        time.sleep(1)
        found = agents()
        if len(found) != 1:
            raise RuntimeError(f"Found {len(found)} processes that run {AGENT.decode()} where there should be 1.")
        (agent,) = found
        before, started = cpu_seconds(agent), time.perf_counter()
        time.sleep(WATCHED_S)
        used, elapsed = cpu_seconds(agent) - before, time.perf_counter() - started
        resident = fields(Path(f"/proc/{agent}/status"))[b"VmRSS"]
        return {
            "rss_bytes": float(resident),
            "pss_bytes": float(proportional(agent)),
            "cpu_percent": 100 * used / elapsed,
        }


def jobs(quick: bool) -> dict[str, Job]:
    """
    List what has to be run.
    """
    return {"idle": module("measure.idle")}


def rows(results: Results) -> list[Row]:
    """
    Judge memory and CPU.
    """
    rss, pss, cpu = (number(results, "idle", field) for field in ("rss_bytes", "pss_bytes", "cpu_percent"))
    resident = None if rss.value is None else rss.value / 1e6
    shared = f"{mebibytes(rss)} resident, {mebibytes(pss)} proportional" if rss.value is not None else mebibytes(rss)
    return [
        Row(
            what="an idle agent: memory",
            ours=shared,
            criteria=(Criterion("resident", resident, at_most=40, unit="MB"),),
            bounded_by="the interpreter and asyncio",
        ),
        Row(
            what=f"an idle agent: CPU over {WATCHED_S:g} s",
            ours=percent(cpu),
            criteria=(Criterion("of a core", cpu.value, at_most=0.5, unit="%"),),
            bounded_by="nothing: it sleeps until a frame arrives or a child ends",
        ),
    ]


if __name__ == "__main__":
    answer(measure())
