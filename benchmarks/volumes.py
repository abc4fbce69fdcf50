"""
Times volumes as a node has them, beside boto3's download and a bare rclone, at an object store on this machine.

usage: python benchmarks/volumes.py [--mib 512] [--files 10000] [--rounds 4]

The store is SeaweedFS, from its wheel. Needs /dev/fuse, and root or fusermount3. All take turns in each round, in the
other order in every second one, and begin anew, once what the one before wrote is on the disk.
Copies are timed from the start of the process that keeps the volumes until all files are on the node, and then from a
flush until all that was written there is in the bucket.
A share of 1 is as fast as what it is compared with, more is faster.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from attrs import evolve, frozen
from measure.served_bucket import SMALL, ServedBucket, served_bucket
from measure.timing import timed

from skyward.node.volumes.keeper_process import KeeperProcess
from skyward.node.volumes.rclone_command import TRANSFERS, environment, source
from skyward.node.volumes.rclone_search import Rclone, find_rclone
from skyward.node.volumes.volume_order import VolumeOrder

BUCKET = "benchmark-of-volumes"
BLOCK = 1 << 20
WRITTEN_WITHIN = 600.0
"""Seconds in which files have to be in the bucket."""


@frozen(kw_only=True)
class Measured:
    """
    Hold what each way is measured with.

    Args:
        bucket: The bucket.
        rclone: The program.
        order: Its volume, mounted.
        files: A folder of small files, to copy to the bucket.
        turn: The round.
    """

    bucket: ServedBucket
    rclone: Rclone
    order: VolumeOrder
    files: Path
    turn: int

    @property
    def copied(self) -> VolumeOrder:
        """Return the volume of the small objects."""
        return evolve(self.order, prefix="small/", synced=True)

    @property
    def written(self) -> VolumeOrder:
        """Return a volume of no objects yet, to write to."""
        return evolve(self.order, prefix=f"written-{self.turn}/", synced=True, read_only=False)


@asynccontextmanager
async def kept(order: VolumeOrder, folder: Path) -> AsyncIterator[tuple[KeeperProcess, float]]:
    """Keep a volume; yield its process, and the seconds until it was there."""
    keeper = KeeperProcess(asyncio.get_running_loop(), print, print)
    began = time.perf_counter()
    said = await keeper.ask(
        {
            "do": "open",
            "orders": [order.to_dict()],
            "folder": str(folder / "keeper"),
            "tools": str(folder / "tools"),
            "packages": False,
        }
    )
    assert "failed" not in said, said
    yield keeper, time.perf_counter() - began
    await keeper.ask({"do": "close"})
    keeper.close()
    await keeper.wait(30.0)


async def by_mount(at: Measured) -> dict[str, float]:
    """Read the large object from its mount, from its beginning to its end."""

    def read() -> None:
        with open(Path(at.order.mount, "large"), "rb", buffering=0) as file:
            while file.read(BLOCK):
                pass

    async with kept(at.order, at.bucket.work) as (_, there):
        return {"until mounted": there, "mounted": await asyncio.to_thread(timed, read)}


async def by_copy(at: Measured) -> dict[str, float]:
    """Have the small objects on the disk."""
    async with kept(at.copied, at.bucket.work) as (_, there):
        return {"copied in": there}


async def by_flush(at: Measured) -> dict[str, float]:
    """Have the small files in the bucket."""
    async with kept(at.written, at.bucket.work) as (keeper, _):
        for path in at.files.iterdir():
            os.link(path, Path(at.written.mount, path.name))
        began = time.perf_counter()
        said = await keeper.ask({"do": "flush", "within": WRITTEN_WITHIN})
        assert not said["unwritten"], said
        return {"copied out": time.perf_counter() - began}


def by_rclone(at: Measured, words: list[str]) -> float:
    """Copy by rclone as it is."""
    command = [at.rclone.path, "copy", *words, "--transfers", str(TRANSFERS), "--checkers", str(TRANSFERS)]
    env = environment(at.order, os.environ)
    return timed(lambda: subprocess.run(command, env=env, check=True))


def ways(at: Measured) -> list[Callable[[], dict[str, float]]]:
    """Return what is measured in a round; neighbours are compared."""
    bucket, work = at.bucket, at.bucket.work
    download = partial(bucket.client.download_file, BUCKET, "large", str(work / "got"))
    bare = str(work / f"bare-{at.turn}")
    target = source(evolve(at.order, prefix=f"bare-{at.turn}/"))
    return [
        lambda: {"boto3": timed(download)},
        lambda: asyncio.run(by_mount(at)),
        lambda: {"rclone in": by_rclone(at, [source(at.copied), bare])},
        lambda: asyncio.run(by_copy(at)),
        lambda: {"rclone out": by_rclone(at, [str(at.files), target])},
        lambda: asyncio.run(by_flush(at)),
    ]


def main() -> None:
    """
    Measure, and print medians and shares.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=4)
    given = parser.parse_args()
    figures: dict[str, list[float]] = {}
    with served_bucket(BUCKET, size=given.mib << 20, small=given.files) as bucket:
        refused: list[str] = []
        rclone = find_rclone(str(bucket.work / "tools"), refused, packages=False)
        assert rclone is not None, refused
        order = VolumeOrder(
            bucket=BUCKET,
            mount=str(bucket.work / "mount"),
            endpoint=bucket.endpoint,
            region="us-east-1",
            access_key=bucket.access_key,
            secret_key=bucket.secret_key,
        )
        files = bucket.work / "files"
        files.mkdir()
        for number in range(given.files):
            (files / f"{number:05}").write_bytes(os.urandom(SMALL))
        for turn in range(given.rounds):
            at = Measured(bucket=bucket, rclone=rclone, order=order, files=files, turn=turn)
            for way in ways(at) if turn % 2 == 0 else reversed(ways(at)):
                # What the one before wrote and removed is none of this one's time.
                os.sync()
                for name, seconds in way().items():
                    figures.setdefault(name, []).append(seconds)
    print(f"{platform.machine()}, {os.cpu_count()} processors, rclone {'.'.join(map(str, rclone.version))}")
    medians = {name: statistics.median(values) for name, values in figures.items()}
    for name, seconds in medians.items():
        print(f"{name:14} {seconds:8.2f} s   of {' '.join(f'{each:.2f}' for each in sorted(figures[name]))}")
    print(f"sequential read, share of boto3's download: {medians['boto3'] / medians['mounted']:.2f}")
    for way in ("in", "out"):
        share = medians[f"rclone {way}"] / medians[f"copied {way}"]
        print(f"{given.files} files of {SMALL} bytes {way}, share of rclone's copy: {share:.2f}")


if __name__ == "__main__":
    main()
