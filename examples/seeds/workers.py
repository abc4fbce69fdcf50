"""
Lay out a node: how many tasks at once, in threads or in processes.
"""

import os
import threading

import skyward as sky


@sky.function
def where(x: int) -> tuple[int, int]:
    return os.getpid(), threading.get_ident()


threads = sky.Options(worker=sky.Worker(concurrency=4, executor="thread"))
processes = sky.Options(worker=sky.Worker(concurrency=2, buffer=2, executor="process", reuse_processes=False))

with sky.Compute(provider=sky.Local(), options=threads) as pool:
    of_threads = pool.map(where, range(8))
with sky.Compute(provider=sky.Local(), options=processes) as pool:
    of_processes = pool.map(where, range(4))

print(
    f"threads: {len({pid for pid, _ in of_threads})} process | "
    f"fresh processes: {len({pid for pid, _ in of_processes})} for 4 tasks"
)
