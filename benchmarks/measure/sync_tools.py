"""Tools that copy a folder of small files to a bucket and back: rclone, s5cmd, s3transfer and `sky.Storage`."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen
from s3transfer.manager import TransferConfig, TransferManager

import skyward as sky
from measure.mount_tools import Place, aws_environment, program_of, rclone_environment, with_settings
from measure.timing import timed

__all__ = ["Copies", "measured_copies"]

SIDE_BY_SIDE = 16
"""Requests that each of them has under way."""

Ways = dict[str, tuple[Callable[[], object], Callable[[], object]]]
"""How each uploads the folder, and how it downloads it into another one."""


@frozen(kw_only=True)
class Copies:
    """
    Hold what is copied.

    Args:
        client: boto3's.
        place: The bucket.
        work: A folder for the files.
        count: How many there are.
        size: Bytes of each.
    """

    client: Any
    place: Place
    work: Path
    count: int
    size: int

    @property
    def source(self) -> Path:
        """Return the folder that is uploaded."""
        return self.work / "source"

    @property
    def target(self) -> Path:
        """Return the folder that is downloaded into, empty before each time."""
        return self.work / "target"


def measured_copies(copies: Copies, rounds: int) -> None:
    """Print the seconds of each way, and check that each has copied everything."""
    copies.source.mkdir()
    for number in range(copies.count):
        (copies.source / f"{number:06}").write_bytes(os.urandom(copies.size))
    ways = {**_rclone(copies), **_s5cmd(copies), **_s3transfer(copies), **_storage(copies)}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (upload, download) in ways.items():
            _emptied(copies)
            up = timed(upload)
            copies.target.mkdir()
            down = timed(download)
            assert copies.count == sum(1 for path in copies.target.rglob("*") if path.is_file()), name
            seconds[name].append((up, down))
            shutil.rmtree(copies.target)
    print(f"| {copies.count:,} files of {copies.size:,} bytes | up, s | down, s |\n|---|---|---|")
    for name, each in seconds.items():
        up, down = (statistics.median(column) for column in zip(*each, strict=True))
        print(f"| {name} | {up:.1f} | {down:.1f} |", flush=True)


def _emptied(copies: Copies) -> None:
    pages = copies.client.get_paginator("list_objects_v2").paginate(Bucket=copies.place.bucket, Prefix="copied/")
    for page in pages:
        if objects := [{"Key": row["Key"]} for row in page.get("Contents", ())]:
            copies.client.delete_objects(Bucket=copies.place.bucket, Delete={"Objects": objects, "Quiet": True})


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=with_settings(environment), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def _rclone(copies: Copies) -> Ways:
    program = program_of("rclone")
    if program is None:
        return {}
    environment, bucket = rclone_environment(copies.place), f"store:{copies.place.bucket}/copied"
    options = [f"--transfers={SIDE_BY_SIDE}", f"--checkers={SIDE_BY_SIDE}", "--use-server-modtime", "--fast-list"]

    def copy(source: str, target: str) -> None:
        _run([program, "copy", *options, source, target], environment)

    return {
        "rclone copy": (
            lambda: copy(str(copies.source), bucket),
            lambda: copy(bucket, str(copies.target)),
        )
    }


def _s5cmd(copies: Copies) -> Ways:
    program = program_of("s5cmd")
    if program is None:
        return {}
    environment, bucket = aws_environment(copies.place), f"s3://{copies.place.bucket}/copied/"
    options = ["--endpoint-url", copies.place.endpoint, "--numworkers", str(SIDE_BY_SIDE), "--log", "error"]

    def copy(source: str, target: str) -> None:
        _run([program, *options, "cp", source, target], environment)

    return {
        "s5cmd cp": (
            lambda: copy(f"{copies.source}/", bucket),
            lambda: copy(f"{bucket}*", f"{copies.target}/"),
        )
    }


def _s3transfer(copies: Copies) -> Ways:
    config = TransferConfig(max_request_concurrency=SIDE_BY_SIDE)
    bucket, names = copies.place.bucket, [f"{number:06}" for number in range(copies.count)]

    def upload() -> None:
        with TransferManager(copies.client, config) as manager:
            for name in names:
                manager.upload(str(copies.source / name), bucket, f"copied/{name}")

    def download() -> None:
        with TransferManager(copies.client, config) as manager:
            for name in names:
                manager.download(bucket, f"copied/{name}", str(copies.target / name))

    return {"s3transfer, threads": (upload, download)}


def _storage(copies: Copies) -> Ways:
    place = copies.place
    given = {"access_key": place.access_key, "secret_key": place.secret_key}

    def storage() -> Any:
        return sky.Storage(place.endpoint, path_style=True, region="us-east-1", **given)

    def upload() -> None:
        with storage() as store:
            store.upload(place.bucket, copies.source, key="copied/")

    def download() -> None:
        with storage() as store:
            store.download(place.bucket, "copied/", copies.target)

    return {"`sky.Storage`": (upload, download)}
