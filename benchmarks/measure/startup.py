"""
Cost of the import, and the time from entering a pool to having left it.

usage: python -m measure.startup import
       python -m measure.startup SYSTEM VARIANT NODES
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

from measure.harness import Job, Results, answer, module, number, worst
from measure.peers import PEERS, open_system
from measure.table import NONE, Criterion, Row, milliseconds, seconds

BARE = "pass"
IMPORT = """
import skyward as sky
@sky.function
def work(x: int) -> int:
    return x
sky.Image()
"""
# None of these may be loaded by what every script pays for.
HEAVY = ("asyncssh", "boto3", "httpx", "rich")
REPEATS = 9
VARIANTS = {"plain": "defaults", "watched": "event handler, log console and timeouts on"}


def cpu_seconds(code: str) -> float:
    """
    Run code in a fresh interpreter and take the CPU time of that process.
    """
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"A fresh interpreter exited with {process.returncode} for: {code.strip()}")
    return usage.ru_utime + usage.ru_stime


def measure_import() -> dict[str, float]:
    """
    Take the median of the CPU time above a bare interpreter's.
    """
    # This first run also writes the byte code that the others find.
    cpu_seconds(f"{IMPORT}\nimport sys\nassert not set({HEAVY}) & sys.modules.keys()")
    above = [cpu_seconds(IMPORT) - cpu_seconds(BARE) for _ in range(REPEATS)]
    return {"cpu_ms": statistics.median(above) * 1e3}


def one() -> int:
    return 1


def measure_pool(system: str, variant: str, nodes: int) -> dict[str, float]:
    """
    Time a pool's whole life around one call.
    """
    # What is timed is opening a pool, not the import, which has a row of its own.
    __import__({"Skyward": "skyward", **PEERS}[system])
    started = time.perf_counter()
    with open_system(system, nodes=nodes, slots=1, watched=variant == "watched") as face:
        entered = time.perf_counter()
        face.call(face.prepare(one))
        first = time.perf_counter()
    left = time.perf_counter()
    return {
        "total_s": left - started,
        "enter_s": entered - started,
        "first_s": first - entered,
        "leave_s": left - first,
    }


def jobs_import(quick: bool) -> dict[str, Job]:
    """
    List what has to be run for the import.
    """
    return {"import": module("measure.startup", "import")}


def jobs_pool(quick: bool) -> dict[str, Job]:
    """
    List what has to be run for pools of one and of four nodes.
    """
    listed = {}
    for nodes in (1, 4):
        for variant in VARIANTS:
            name = f"startup Skyward {variant} {nodes}"
            listed[name] = module("measure.startup", "Skyward", variant, str(nodes), repeats=3)
    # Ray has no call that makes four nodes on one machine outside its own test kit.
    listed["startup Ray 1"] = module("measure.startup", "Ray", "plain", "1", needs="Ray")
    for nodes in (1, 4):
        listed[f"startup Dask {nodes}"] = module("measure.startup", "Dask", "plain", str(nodes), needs="Dask")
    return listed


def rows_import(results: Results) -> list[Row]:
    """
    Judge the import.
    """
    cost = number(results, "import", "cpu_ms")
    return [
        Row(
            what="`import skyward`, one `@sky.function`, one `sky.Image()`: CPU above bare Python",
            ours=milliseconds(cost),
            criteria=(Criterion("of CPU", cost.value, at_most=100, unit="ms"),),
            bounded_by="imports of attrs, pluggy and cloudpickle",
        )
    ]


def rows_pool(results: Results) -> list[Row]:
    """
    Judge the pools' lives.
    """
    listed = []
    for nodes, bound in ((1, 0.8), (4, 1.5)):
        names = {meaning: f"startup Skyward {variant} {nodes}" for variant, meaning in VARIANTS.items()}
        total = worst(results, names, "total_s", max)
        parts = {part: worst(results, names, part, max).value for part in ("enter_s", "first_s", "leave_s")}
        split = ", ".join(f"{part[:-2]} {value:.2f} s" for part, value in parts.items() if value is not None)
        listed.append(
            Row(
                what=f"pool of {nodes} on Local: enter, first result, exit" + (f" ({split})" if split else ""),
                ours=seconds(total),
                ray=seconds(number(results, "startup Ray 1", "total_s")) if nodes == 1 else NONE,
                dask=seconds(number(results, f"startup Dask {nodes}", "total_s")),
                criteria=(Criterion("in all", total.value, at_most=bound, unit="s"),),
                bounded_by="interpreters to start, an agent and a worker a node, on the cores there are",
            )
        )
    return listed


if __name__ == "__main__":
    if sys.argv[1] == "import":
        answer(measure_import())
    else:
        answer(measure_pool(sys.argv[1], sys.argv[2], int(sys.argv[3])))
