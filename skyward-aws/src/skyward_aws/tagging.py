"""Tags as EC2's calls take them, and as its answers show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["tagged", "tags_in", "to_tags"]

_LONGEST = 256


def to_tags(strings: Mapping[str, str]) -> list[dict[str, str]]:
    """
    Return tags as a call takes them.

    Args:
        strings: Their values by their names.

    >>> to_tags({"Name": "skyward-train"})
    [{'Key': 'Name', 'Value': 'skyward-train'}]
    """
    return [{"Key": name, "Value": text[:_LONGEST]} for name, text in strings.items()]


def tags_in(row: Mapping[str, Any]) -> dict[str, str]:
    """
    Return the tags of a row of an answer, by their names.

    Args:
        row: The row.

    >>> tags_in({"Tags": [{"Key": "Name", "Value": "skyward-train"}]})
    {'Name': 'skyward-train'}
    """
    return {tag["Key"]: tag.get("Value", "") for tag in row.get("Tags", ()) if "Key" in tag}


def tagged(kinds: Iterable[str], tags: Sequence[Mapping[str, str]]) -> list[dict[str, Any]]:
    """Return tags as a call takes them that makes things of several kinds."""
    return [{"ResourceType": kind, "Tags": list(tags)} for kind in kinds]
