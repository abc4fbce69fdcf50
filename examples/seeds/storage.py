"""Files and folders in an object store, as in the user's documents; the store is moto's, in this process."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import boto3
from moto import mock_aws

import skyward as sky

os.environ |= {"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}

with mock_aws(), tempfile.TemporaryDirectory() as folder:
    home = Path.cwd()
    os.chdir(folder)
    Path("model.pt").write_bytes(b"weights")
    boto3.client("s3").create_bucket(Bucket="my-bucket")

    with sky.storage.S3(region="us-east-1") as s3:
        s3.upload("my-bucket", "model.pt", key="checkpoints/model.pt")
        keys = s3.ls("my-bucket", prefix="checkpoints/")
        s3.download("my-bucket", "checkpoints/model.pt", "local/model.pt")

    same = Path("local/model.pt").read_bytes() == b"weights"
    there = s3.exists("my-bucket", "checkpoints/model.pt")
    s3.rm("my-bucket", "checkpoints/model.pt")
    gone = not s3.exists("my-bucket", "checkpoints/model.pt")
    os.chdir(home)

print(keys, "| the same:", same, "| there:", there, "| removed:", gone)
