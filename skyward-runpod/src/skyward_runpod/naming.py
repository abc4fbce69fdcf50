"""Whose a pod is: RunPod has no tags, so that it is in the pod's name, and what has no room there in a variable."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from skyward.provider import Tags

__all__ = ["TAGS", "name_of", "tags_of", "written"]

TAGS = "SKYWARD_START_TAGS"
"""The variable; names of this kind are kept from logins."""

_LONGEST = 60
_PREFIX = "skyward-"
# As ids and tokens are made, so that no other program's pod is taken for ours because it is called alike.
_NAME = re.compile(r"skyward-([0-9a-f]{8}\d{0,3})-(\d{1,6})-([0-9a-f]{16})(?:-.*)?")


def name_of(tags: Tags) -> str:
    """
    Name a pod by its pool, node and request; the owner is for people to read, as far as there is room.

    Args:
        tags: What is to be written on it, its node included.

    >>> name_of(Tags(pool_id="a1b2", node=3, token="0c0ffee0", owner="ann@laptop"))
    'skyward-a1b2-3-0c0ffee0-ann-laptop'
    """
    owner = re.sub(r"[^A-Za-z0-9.]+", "-", tags.owner)
    return f"{_PREFIX}{tags.pool_id}-{tags.node or 0}-{tags.token}-{owner}"[:_LONGEST].rstrip("-.")


def written(tags: Tags) -> str:
    """
    Write what has no room in the name. An expiry could not be renewed, so there is none.

    Args:
        tags: What is to be written on a pod.

    >>> written(Tags(pool_id="a1b2", pool_name="train", node=3, expires_at=1.8e9))
    '{"skyward:pool-name": "train"}'
    """
    kept = {name: text for name, text in tags.to_strings().items() if name.partition(":")[2] in _BESIDE}
    return json.dumps(kept, sort_keys=True)


_BESIDE = ("pool-name", "owner", "client")


def tags_of(row: Mapping[str, Any]) -> Tags | None:
    """
    Read whose a pod is; None if it is none of ours.

    Args:
        row: The pod, as RunPod describes it.

    >>> tags_of({"name": "skyward-a1b2c3d4-3-0123456789abcdef"}).node, tags_of({"name": "skyward-notes-1-old"})
    (3, None)
    """
    found = _NAME.fullmatch(str(row.get("name")))
    if found is None:
        return None
    pool, node, token = found.groups()
    strings = {"skyward:pool": pool, "skyward:node": node, "skyward:token": token}
    return Tags.from_strings({**_beside(row), **strings})


def _beside(row: Mapping[str, Any]) -> dict[str, str]:
    env = row.get("env")
    try:
        found = json.loads(env[TAGS]) if isinstance(env, Mapping) else {}
    except (KeyError, TypeError, ValueError):
        return {}
    return {str(name): str(text) for name, text in found.items()} if isinstance(found, dict) else {}
