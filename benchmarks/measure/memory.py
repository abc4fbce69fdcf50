"""
Memory that a tree of processes holds, shared pages counted once.

usage: python -m measure.memory PID    prints a baseline, samples until its input ends, prints the peak above it
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path

PROC = Path("/proc")
PERIOD_S = 0.01


def tree(root: int) -> list[int]:
    """
    List a process and all its descendants.
    """
    parents: dict[int, int] = {}
    for entry in os.listdir(PROC):
        if entry.isdigit():
            try:
                stat = (PROC / entry / "stat").read_bytes()
            except OSError:
                continue
            # The name may hold spaces and brackets; the parent is the second field after the last bracket.
            parents[int(entry)] = int(stat.rpartition(b")")[2].split()[1])
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting.extend(child for child, parent in parents.items() if parent == pid)
    return found


def fields(path: Path) -> dict[bytes, int]:
    """
    Read a file of `Name:  123 kB` lines as bytes.
    """
    found = {}
    for line in path.read_bytes().splitlines():
        name, _, value = line.partition(b":")
        if value.endswith(b" kB"):
            found[name] = int(value[:-3]) * 1024
    return found


def proportional(pid: int) -> int:
    """
    Read a process's proportional set size in bytes: its own pages and its share of the others.
    """
    return fields(PROC / str(pid) / "smaps_rollup")[b"Pss"]


def open_memfds(pid: int) -> dict[tuple[int, int], int]:
    """
    Map the device and inode of each memfd that a process has open to the bytes it holds.
    """
    held = {}
    folder = PROC / str(pid) / "fd"
    for name in os.listdir(folder):
        link = f"{folder}/{name}"
        try:
            if os.readlink(link).startswith("/memfd:"):
                stat = os.stat(link)
                held[stat.st_dev, stat.st_ino] = stat.st_blocks * 512
        except OSError:
            continue
    return held


def mappings(pid: int) -> tuple[int, dict[tuple[int, int], int]]:
    """
    Count the bytes of a process's own, and map each memfd that it maps to the bytes it sees of it.
    """
    own = 0
    seen: dict[tuple[int, int], int] = {}
    key: tuple[int, int] | None = None
    for line in (PROC / str(pid) / "smaps").read_bytes().splitlines():
        words = line.split()
        if not words[0].endswith(b":"):
            key = None
            if len(words) > 5 and words[5].startswith(b"/memfd:"):
                major, _, minor = words[3].partition(b":")
                key = (os.makedev(int(major, 16), int(minor, 16)), int(words[4]))
        elif key is None:
            own += int(words[1]) * 1024 if words[0] == b"Pss:" else 0
        elif words[0] == b"Rss:":
            seen[key] = seen.get(key, 0) + int(words[1]) * 1024
        elif words[0] == b"Anonymous:":
            # A private mapping's own copies of pages are its process's, not the memfd's.
            seen[key] -= int(words[1]) * 1024
            own += int(words[1]) * 1024
    return own, seen


def held(root: int, without: int) -> int:
    """
    Count the bytes that a process tree holds: proportional set sizes, and memfds once, mapped or not.

    The tree stands still meanwhile, or what passes from one process to the next would be counted in both.

    Args:
        root: The tree's first process.
        without: A process whose subtree is left out, such as the one that counts.
    """
    left_out = set(tree(without))
    stopped = [pid for pid in tree(root) if pid not in left_out]
    try:
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        return _held([pid for pid in stopped if _stands_still(pid)])
    finally:
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _stands_still(pid: int) -> bool:
    """
    Wait until a process has stopped; False if it ended.
    """
    while True:
        try:
            state = (PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()[0]
        except OSError:
            return False
        if state in b"TtZX":
            return state in b"Tt"


def _held(pids: list[int]) -> int:
    total = 0
    memfds: dict[tuple[int, int], int] = {}
    for pid in pids:
        rollup = fields(PROC / str(pid) / "smaps_rollup")
        own, filled = rollup[b"Pss"], open_memfds(pid)
        # Reading every mapping is slow, so it is done only where some are shared memory.
        if rollup[b"Pss_Shmem"]:
            own, seen = mappings(pid)
            for key, size in seen.items():
                memfds[key] = max(memfds.get(key, 0), size)
        for key, size in filled.items():
            memfds[key] = max(memfds.get(key, 0), size)
        total += own
    return total + sum(memfds.values())


def watch(root: int) -> None:
    """
    Sample until the input ends.
    """
    baseline = held(root, os.getpid())
    print(baseline, flush=True)
    peak, samples = baseline, 0
    while not select.select([sys.stdin], [], [], 0)[0]:
        started = time.perf_counter()
        peak = max(peak, held(root, os.getpid()))
        samples += 1
        time.sleep(max(0, PERIOD_S - (time.perf_counter() - started)))
    print(peak - baseline, samples, flush=True)


if __name__ == "__main__":
    watch(int(sys.argv[1]))
