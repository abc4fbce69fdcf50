"""What is left of a mounted bucket when the tool that mounted it is killed."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

from measure.mount_tools import MountTool, Place, mounted

__all__ = ["after_a_kill", "after_an_unmount"]

UPLOADED_WITHIN = 20.0
"""Seconds that a tool has to upload what it finds in its cache."""
CONTENT = b"x" * 100_000


def after_a_kill(tool: MountTool, place: Place, client: Any) -> str:
    """
    Kill a tool while one file is closed and another one is being written, mount again, and say what there is.

    Args:
        tool: The tool.
        place: The bucket; the tool's cache is kept for the second time.
        client: boto3's, which looks at the bucket.
    """
    words = []
    with mounted(tool, place) as process:
        (place.folder / "closed").write_bytes(CONTENT)
        file = (place.folder / "open").open("wb", buffering=0)
        file.write(CONTENT)
        process.kill()
        process.wait()
        words.append(f"a reader gets {_error_of_a_reader(place.folder)}")
        try:
            file.close()
        except OSError as error:
            words.append(f"the writer's `close` {_name(error)}")
        else:
            words.append("the writer's `close` says nothing")
    words.append(f"at the store: the closed file {_state(client, place, 'closed')}")
    words.append(f"the open one {_state(client, place, 'open')}")
    with mounted(tool, place):
        deadline = time.monotonic() + UPLOADED_WITHIN
        while _state(client, place, "open") != "whole" and time.monotonic() < deadline:
            time.sleep(0.5)
        words.append(f"once mounted again, the open one {_state(client, place, 'open')}")
    for key in ("closed", "open"):
        client.delete_object(Bucket=place.bucket, Key=key)
    return ", ".join(words)


def after_an_unmount(tool: MountTool, place: Place, client: Any) -> str:
    """
    Unmount as soon as a file was closed, and say whether it is at the store when the tool has ended.

    Args:
        tool: The tool.
        place: The bucket.
        client: boto3's.
    """
    with mounted(tool, place):
        (place.folder / "closed").write_bytes(CONTENT)
    state = _state(client, place, "closed")
    client.delete_object(Bucket=place.bucket, Key="closed")
    return state


def _error_of_a_reader(folder: Path) -> str:
    try:
        os.listdir(folder)
    except OSError as error:
        return _name(error)
    return "an answer"


def _name(error: OSError) -> str:
    return f"`{errno.errorcode.get(error.errno or 0, str(error))}`"


def _state(client: Any, place: Place, key: str) -> str:
    found = client.list_objects_v2(Bucket=place.bucket, Prefix=key).get("Contents", ())
    sizes = [row["Size"] for row in found if row["Key"] == key]
    if not sizes:
        return "absent"
    return "whole" if sizes == [len(CONTENT)] else f"of {sizes[0]} bytes"
