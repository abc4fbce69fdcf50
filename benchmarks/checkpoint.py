"""
Times a checkpoint beside `dd`, to one disk and in one run, and says how much memory it takes.

usage: python benchmarks/checkpoint.py [--mib 1024] [--rounds 3] [--folder .] [--torch]

For each object a process writes as many random bytes with dd, synced at its end, and saves the object, by turns.
The best of each is compared. Another process loads it.
Small objects are an eighth of the size in memory; what they take is the time and the memory of pickling them.
The peak is that of the process beyond what it had before it made the object, as a multiple of the object.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

KINDS = ("array", "state", "bytes", "objects")


class Figure(NamedTuple):
    """What one process says: seconds of dd and ours, bytes that we wrote or read, peak of memory as a multiple."""

    plain: float
    seconds: float
    size: int
    peak: float


def made(kind: str, size: int) -> tuple[Any, int]:
    """Make an object of a size, and return the bytes that it has."""
    import numpy as np

    generator = np.random.default_rng(17)
    match kind:
        case "array":
            return generator.integers(0, 255, size, np.uint8), size
        case "state":
            layers = {f"layer{number}.weight": generator.integers(0, 255, size // 64, np.uint8) for number in range(64)}
            if "torch" in sys.modules:
                import torch

                return {name: torch.from_numpy(layer).view(torch.float32) for name, layer in layers.items()}, size
            return layers, size
        case "bytes":
            return generator.bytes(size), size
        case _:
            rows = [(number, str(number)) for number in range(size // 2048)]
            return rows, sum(map(sys.getsizeof, rows[:1000])) * len(rows) // 1000


def resident(row: str = "VmRSS") -> int:
    """Return the memory that this process holds, in bytes, or with `VmHWM` the most that it has held."""
    text = Path("/proc/self/status").read_text()
    return int(text.partition(f"{row}:")[2].split()[0]) << 10


def forget_peak() -> None:
    """Begin to count the peak again."""
    Path("/proc/self/clear_refs").write_text("5")


def save(kind: str, size: int, folder: str, source: str, rounds: int) -> Figure:
    """Save an object, and have dd write as much, by turns."""
    import skyward as sky

    saved = sky.checkpoint(key="bench", keep=1, to=folder)
    # What is loaded at the first use is not the object's.
    saved.save([0])
    before = resident()
    obj, held = made(kind, size)
    own = max(held, resident() - before)
    forget_peak()
    plain, seconds = [], []
    for _ in range(rounds):
        plain.append(disk(source, f"{source}.copy", size))
        started = time.perf_counter()
        saved.save(obj)
        seconds.append(time.perf_counter() - started)
    return Figure(min(plain), min(seconds), os.stat(newest(folder)).st_size, (resident("VmHWM") - before) / own)


def load(kind: str, size: int, folder: str) -> Figure:
    """Load it."""
    import numpy as np

    import skyward as sky

    assert np
    saved = sky.checkpoint(key="bench", keep=1, to=folder)
    before = resident()
    forget_peak()
    started = time.perf_counter()
    obj = saved.load()
    seconds = time.perf_counter() - started
    own = size if kind != "objects" else resident() - before
    del obj
    return Figure(0.0, seconds, size, (resident("VmHWM") - before) / own)


def newest(folder: str) -> Path:
    """Return the file of the newest version."""
    return max(Path(folder).rglob("*.checkpoint"))


def disk(source: str, target: str, size: int) -> float:
    """Return for how many seconds dd writes."""
    command = ["dd", f"if={source}", f"of={target}", "bs=8M", f"count={size >> 23}", "conv=fsync", "status=none"]
    started = time.perf_counter()
    subprocess.run(command, check=True)
    seconds = time.perf_counter() - started
    os.unlink(target)
    return seconds


def apart(what: str, *arguments: object, torch: bool) -> Figure:
    """Have a process of its own measure."""
    command = [sys.executable, __file__, "--measure", what, *map(str, arguments), *(["--torch"] if torch else [])]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    plain, seconds, size, peak = done.stdout.split()
    return Figure(float(plain), float(seconds), int(size), float(peak))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="MiB of the object")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--folder", default=".", help="a folder of the disk")
    parser.add_argument("--torch", action="store_true", help="make tensors of the state")
    parser.add_argument("--measure", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.torch and options.measure:
        __import__("torch")
    if options.measure:
        what, kind, size, folder, *more = options.measure
        if what == "save":
            print(*save(kind, int(size), folder, more[0], int(more[1])))
        else:
            print(*load(kind, int(size), folder))
        return
    size = options.mib << 20
    print(f"Python {platform.python_version()}, {options.mib} MiB, best of {options.rounds}\n")
    heads = ["object", "dd MB/s", "save MB/s", "of dd", "peak", "load MB/s", "peak"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    around = tempfile.mkdtemp(prefix="checkpoint-", dir=options.folder)
    try:
        source = os.path.join(around, "source")
        with open(source, "wb") as file:
            file.writelines(os.urandom(8 << 20) for _ in range(size >> 23))
        for kind in KINDS:
            folder = os.path.join(around, "kept")
            saved = apart("save", kind, size, folder, source, options.rounds, torch=options.torch)
            loaded = apart("load", kind, size, folder, torch=options.torch)
            shutil.rmtree(folder)
            plain, rate = 1e-6 * size / saved.plain, 1e-6 * saved.size / saved.seconds
            texts = [f"{plain:.0f}", f"{rate:.0f}", f"{rate / plain:.2f}", f"{saved.peak:.2f}"]
            texts += [f"{1e-6 * saved.size / loaded.seconds:.0f}", f"{loaded.peak:.2f}"]
            print("| " + " | ".join([kind, *texts]) + " |", flush=True)
    finally:
        shutil.rmtree(around)


if __name__ == "__main__":
    main()
