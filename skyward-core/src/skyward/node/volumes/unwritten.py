"""What rclone's cache has not written to the bucket yet: files that tasks wrote through a mounted volume."""

from __future__ import annotations

import json
import os
from pathlib import Path

__all__ = ["unwritten"]


def unwritten(cache: Path, beneath: str) -> list[str]:
    """
    List the files that rclone has taken and not written yet, as its records in the cache say.

    Args:
        cache: The folder that rclone was given for its cache.
        beneath: The bucket and the prefix, which names in the list leave out.
    """
    records, found = cache / "vfsMeta", []
    for folder, _, names in os.walk(records):
        for name in names:
            path = Path(folder) / name
            if _is_dirty(path):
                # The first step is what rclone calls the store.
                inner = "/".join(path.relative_to(records).parts[1:])
                found.append(inner.removeprefix(beneath.strip("/")).lstrip("/"))
    return sorted(found)


def _is_dirty(record: Path) -> bool:
    """Return whether a record says so; one that cannot be read is being written."""
    try:
        said = json.loads(record.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return isinstance(said, dict) and bool(said.get("Dirty"))
