"""A bucket of an object store on this machine, with one large object and many small ones."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import boto3
from attrs import frozen
from botocore.config import Config

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.storage import stores

__all__ = ["CONNECTIONS", "SMALL", "ServedBucket", "served_bucket"]

SMALL = 10_000
"""Bytes of a small file."""
CONNECTIONS = 10
"""Requests that boto3 has under way."""


@frozen(kw_only=True)
class ServedBucket:
    """
    Hold a bucket with `large`, and with `small/00000` and so on.

    Args:
        client: boto3's.
        name: The bucket.
        endpoint: The store's address.
        access_key: The store's, as is `secret_key`.
        secret_key: Opens it.
        work: A folder for files of the benchmark, which has `large`.
    """

    client: Any
    name: str
    endpoint: str
    access_key: str
    secret_key: str
    work: Path


@contextmanager
def served_bucket(name: str, *, size: int, small: int) -> Iterator[ServedBucket]:
    """
    Start a SeaweedFS, and fill a bucket of it.

    Args:
        name: The bucket.
        size: Bytes of the large object.
        small: Number of the small ones.
    """
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=f"skyward-{name}-")))
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
        client.create_bucket(Bucket=name)
        (work / "large").write_bytes(os.urandom(size))
        client.upload_file(str(work / "large"), name, "large")
        content = os.urandom(SMALL)
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            keys = [f"small/{number:05}" for number in range(small)]
            list(pool.map(lambda key: client.put_object(Bucket=name, Key=key, Body=content), keys))
        yield ServedBucket(
            client=client,
            name=name,
            endpoint=endpoint,
            access_key=stores.ACCESS_KEY,
            secret_key=stores.SECRET_KEY,
            work=work,
        )
