"""
Times uploads and downloads of `sky.Storage` beside those of bare s3transfer, at an object store on this machine.

usage: python benchmarks/storage.py [--mib 256] [--rounds 5] [--endpoint URL]

The store is SeaweedFS where its wheel is installed, else moto's, in a process of its own, unless an endpoint is given;
keys come from the variables of AWS then.
The two take turns in one process, with the same part size and as many requests side by side.
A share of 1 is as fast as s3transfer, more is faster.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from s3transfer.manager import TransferConfig, TransferManager

import skyward as sky

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.storage import stores

BUCKET = "benchmark-of-storage"
PART = 8 << 20
"""Bytes of a part, as both have it by themselves."""
SMALL = 500
"""Files of the folder."""


def served(stack: ExitStack, folder: Path) -> str:
    """
    Start a store, and give its address.
    """
    os.environ |= {"AWS_ACCESS_KEY_ID": stores.ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": stores.SECRET_KEY}
    name = [*stores.SERVERS][-1]
    print(f"Store: {name}")
    folder.mkdir()
    return stores.SERVERS[name](stack, folder)


def bare(endpoint: str) -> Any:
    """
    Make a client of boto3.
    """
    config = Config(s3={"addressing_style": "path"}, max_pool_connections=50)
    return boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config)


def timed(do: Callable[[], object]) -> float:
    """
    Give the seconds that something takes.
    """
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


def transferred(client: Any, work: Callable[[TransferManager], object]) -> float:
    """
    Give the seconds that s3transfer takes for something, its threads' end included.
    """

    def do() -> None:
        config = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART, max_request_concurrency=10)
        with TransferManager(client, config) as manager:
            work(manager)

    return timed(do)


def pair(mine: Callable[[], float], theirs: Callable[[], float], *, first: bool) -> tuple[float, float]:
    """
    Give the seconds of both, ours first or last: what comes second may find a busier disk.
    """
    if first:
        return mine(), theirs()
    seconds = theirs()
    return mine(), seconds


def main() -> None:
    """
    Print a row for each way.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=256, help="MiB of the large file")
    parser.add_argument("--rounds", type=int, default=5, help="how often each is measured")
    parser.add_argument("--endpoint", help="a store that is there")
    options = parser.parse_args()
    size = options.mib << 20
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        endpoint = options.endpoint or served(stack, folder / "store")
        client = bare(endpoint)
        client.create_bucket(Bucket=BUCKET)
        ours = stack.enter_context(sky.Storage(endpoint, path_style=True, region="us-east-1", part_size=PART))
        large, small = folder / "large", folder / "small"
        large.write_bytes(os.urandom(size))
        small.mkdir()
        for number in range(SMALL):
            (small / f"{number:04}").write_bytes(os.urandom(10_000))
        names = [f"small/{path.name}" for path in small.iterdir()]
        back = folder / "back"
        back.mkdir()

        def upload_small(manager: TransferManager) -> None:
            for name in names:
                manager.upload(str(folder / name), BUCKET, name)

        def download_small(manager: TransferManager) -> None:
            for name in names:
                manager.download(BUCKET, name, str(back / Path(name).name))

        rows: list[tuple[str, int, Callable[[], float], Callable[[], float]]] = [
            (
                f"upload, {options.mib} MiB",
                size,
                lambda: timed(lambda: ours.upload(BUCKET, large, key="large")),
                lambda: transferred(client, lambda manager: manager.upload(str(large), BUCKET, "large").result()),
            ),
            (
                f"download, {options.mib} MiB",
                size,
                lambda: timed(lambda: ours.download(BUCKET, "large", folder / "ours")),
                lambda: transferred(
                    client, lambda manager: manager.download(BUCKET, "large", str(folder / "theirs")).result()
                ),
            ),
            (
                f"upload, {SMALL} files of 10 kB",
                SMALL * 10_000,
                lambda: timed(lambda: ours.upload(BUCKET, small, key="small/")),
                lambda: transferred(client, upload_small),
            ),
            (
                f"download, {SMALL} files of 10 kB",
                SMALL * 10_000,
                lambda: timed(lambda: ours.download(BUCKET, "small/", folder / "ours-small")),
                lambda: transferred(client, download_small),
            ),
        ]
        print(f"Python {platform.python_version()}, boto3 {boto3.__version__}, {options.rounds} rounds, medians\n")
        print("| what | Skyward MB/s | s3transfer MB/s | share |\n|---|---|---|---|")
        for name, count, mine, theirs in rows:
            pairs = [pair(mine, theirs, first=turn % 2 == 0) for turn in range(options.rounds + 1)][1:]
            first, second = (statistics.median(column) for column in zip(*pairs, strict=True))
            speeds = f"{count / first / 1e6:.0f} | {count / second / 1e6:.0f}"
            print(f"| {name} | {speeds} | {second / first:.2f} |", flush=True)
        assert (folder / "ours").read_bytes() == large.read_bytes()
        ours.rm(BUCKET, "small", recursive=True)
        ours.rm(BUCKET, "large")
        client.delete_bucket(Bucket=BUCKET)


if __name__ == "__main__":
    main()
