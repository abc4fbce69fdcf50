"""
Times volumes as a node has them, beside boto3's download and a bare rclone, at an object store on this machine.

usage: python benchmarks/volumes.py [--mib 512] [--files 10000] [--rounds 3]

The store is SeaweedFS, from its wheel. Needs /dev/fuse, and root or fusermount3. All take turns in each round; mounts
and copies begin anew. A share of 1 is as fast as what it is compared with, more is faster.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import boto3
from attrs import evolve
from botocore.config import Config

from skyward.node.volumes.keeper_process import KeeperProcess
from skyward.node.volumes.rclone_command import environment, source
from skyward.node.volumes.rclone_search import find_rclone
from skyward.node.volumes.volume_order import VolumeOrder

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.storage import stores

BUCKET = "benchmark-of-volumes"
SMALL = 10_000
"""Bytes of a small file."""
BLOCK = 1 << 20


async def with_volume(order: VolumeOrder, folder: Path, use: Callable[[], float]) -> tuple[float, float]:
    """
    Have a volume and use it; return the seconds until it was there, and what using it returned.
    """
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
    there = time.perf_counter() - began
    used = await asyncio.to_thread(use)
    await keeper.ask({"do": "close"})
    keeper.close()
    await keeper.wait(30.0)
    return there, used


def reading(path: Path) -> Callable[[], float]:
    """
    Return what reads a file from its beginning to its end, and gives the seconds.
    """

    def read() -> float:
        began = time.perf_counter()
        with open(path, "rb", buffering=0) as file:
            while file.read(BLOCK):
                pass
        return time.perf_counter() - began

    return read


def timed(work: Callable[[], Any]) -> float:
    """
    Return the seconds that something takes.
    """
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    """
    Measure, and print medians and shares.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skyward-volumes-")))
        (work / "store").mkdir()
        endpoint = stores.SERVERS["seaweedfs"](stack, work / "store")
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id=stores.ACCESS_KEY,
            aws_secret_access_key=stores.SECRET_KEY,
            config=Config(s3={"addressing_style": "path"}, max_pool_connections=50),
        )
        client.create_bucket(Bucket=BUCKET)
        (work / "large").write_bytes(os.urandom(given.mib << 20))
        client.upload_file(str(work / "large"), BUCKET, "large/object")
        with ThreadPoolExecutor(10) as pool:
            body = os.urandom(SMALL)
            list(
                pool.map(
                    lambda number: client.put_object(Bucket=BUCKET, Key=f"small/{number:05}", Body=body),
                    range(given.files),
                )
            )
        order = VolumeOrder(
            bucket=BUCKET,
            mount=str(work / "mount"),
            endpoint=endpoint,
            region="us-east-1",
            access_key=stores.ACCESS_KEY,
            secret_key=stores.SECRET_KEY,
        )
        refused: list[str] = []
        rclone = find_rclone(str(work / "tools"), refused, packages=False)
        assert rclone is not None, refused
        small = evolve(order, prefix="small/", synced=True)
        words = [rclone.path, "copy", source(small), str(work / "bare"), "--transfers", "32", "--checkers", "32"]
        figures: dict[str, list[float]] = {"boto3": [], "mounted": [], "until mounted": [], "rclone": [], "synced": []}
        for _ in range(given.rounds):
            figures["boto3"].append(timed(lambda: client.download_file(BUCKET, "large/object", str(work / "got"))))
            there, read = asyncio.run(with_volume(order, work, reading(work / "mount" / "large" / "object")))
            figures["mounted"].append(read)
            figures["until mounted"].append(there)
            env = environment(small, os.environ)
            figures["rclone"].append(timed(partial(subprocess.run, words, env=env, check=True)))
            shutil.rmtree(work / "bare")
            figures["synced"].append(asyncio.run(with_volume(small, work, lambda: 0.0))[0])
    print(f"{platform.machine()}, {os.cpu_count()} processors, rclone {'.'.join(map(str, rclone.version))}")
    medians = {name: statistics.median(values) for name, values in figures.items()}
    for name, seconds in medians.items():
        print(f"{name:14} {seconds:8.2f} s")
    print(f"sequential read, share of boto3's download: {medians['boto3'] / medians['mounted']:.2f}")
    print(f"{given.files} files of {SMALL} bytes, share of rclone's copy: {medians['rclone'] / medians['synced']:.2f}")


if __name__ == "__main__":
    main()
