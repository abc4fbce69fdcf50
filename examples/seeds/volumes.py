"""
Buckets as folders, as in the user's documents.

A folder stands for the object store, and the mount points lie in another: `/data` is not everybody's to make.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import skyward as sky


@sky.function
def train(data: str, checkpoints: str) -> str:
    rows = Path(data, "rows.txt").read_text().split()
    Path(checkpoints, "model.txt").write_text(f"{len(rows)} rows")
    return rows[0]


with tempfile.TemporaryDirectory() as folder:
    store, nodes = Path(folder, "store"), Path(folder, "nodes")
    (store / "my-bucket" / "datasets").mkdir(parents=True)
    (store / "my-bucket" / "datasets" / "rows.txt").write_text("first second")

    with sky.ComputePool(
        volume=[
            sky.S3Volume(
                mount_path=f"{nodes}/data",
                bucket="my-bucket",
                prefix="datasets/",
                read_only=True,
                storage=store,
            ),
            sky.S3Volume(
                mount_path=f"{nodes}/checkpoints",
                bucket="my-bucket",
                prefix="models/",
                read_only=False,
                storage=store,
            ),
        ],
    ) as pool:
        first = train(f"{nodes}/data", f"{nodes}/checkpoints") >> pool

    with sky.Compute(volumes=[sky.Volume(bucket="my-bucket", mount=f"{nodes}/data", storage=store)]) as pool:
        again = train(f"{nodes}/data/datasets", f"{nodes}/data/models") >> pool

    print(first, "|", again, "|", (store / "my-bucket" / "models" / "model.txt").read_text())
