"""What is written on droplets: words of letters, digits, `:`, `-` and `_`, all of them the pool's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve

from skyward.provider import Tags, escaped, fitting, node_number, unescaped

__all__ = ["OURS", "expiry_tag", "name_of", "node_in", "pool_tag", "read", "tags_in", "tags_of", "written"]

OURS = "skyward"
"""The tag that every droplet of ours has."""

_LONGEST = 255
_NAME = re.compile(r"skyward-(?P<pool>[0-9a-z]+)-\d+")
_LEADING = "skyward:"
_FIELDS = {"pool-name", "owner", "client", "token", "expires"}


def pool_tag(pool_id: str) -> str:
    """
    Return the tag that all droplets of a pool have, and no others.

    >>> pool_tag("a1B")
    'skyward:a1_42'
    """
    return f"{_LEADING}{escaped(pool_id)}"


def expiry_tag(pool_id: str, expires_at: float) -> str:
    """Return the tag that says when a pool's droplets count as forgotten, in seconds since 1970."""
    return f"{pool_tag(pool_id)}:expires:{int(expires_at)}"


def written(tags: Tags) -> tuple[str, ...]:
    """
    Return the tags of a request's droplets.

    DigitalOcean keeps every tag that was ever used, so that each has the pool's id in it and is removed with the pool.
    The node is in the droplet's name, because droplets that one call makes have the same tags.

    Args:
        tags: What is to be written.

    >>> written(Tags(pool_id="p1", owner="me@here"))
    ('skyward', 'skyward:p1', 'skyward:p1:owner:me_40here')
    """
    front = pool_tag(tags.pool_id)
    strings = {name.removeprefix("skyward:"): text for name, text in tags.to_strings().items()}
    fields = ((f"{front}:{name}:", text) for name, text in strings.items() if name in _FIELDS)
    return (OURS, front, *(start + fitting(text, _LONGEST - len(start), escaped) for start, text in fields))


def read(tags: Iterable[str], name: str) -> Tags | None:
    """
    Read what is written on a droplet.

    Args:
        tags: Its tags, others' among them.
        name: Its name.

    Returns:
        The tags; None if the droplet is none of ours.

    >>> read(["web", "skyward", "skyward:p1", "skyward:p1:owner:me_40here"], "skyward-p1-3")
    Tags(pool_id='p1', pool_name='', node=3, owner='me@here', client='', token='', expires_at=None)
    """
    words = [tag.removeprefix(_LEADING).split(":") for tag in tags if tag.startswith(_LEADING)]
    pools = [word[0] for word in words if len(word) == 1]
    if not pools:
        return None
    strings: dict[str, str] = {"skyward:pool": unescaped(pools[0])}
    for word in words:
        if len(word) != 3 or word[0] != pools[0] or word[1] not in _FIELDS:
            continue
        key, text = f"skyward:{word[1]}", unescaped(word[2])
        # While an expiry is renewed there are two, and the later one holds.
        strings[key] = max(strings.get(key, ""), text, key=_rank) if word[1] == "expires" else text
    found = Tags.from_strings(strings)
    return None if found is None else evolve(found, node=node_in(name))


def tags_of(row: Mapping[str, Any]) -> Tags | None:
    """Read what is written on a droplet, as its row shows it; None if it is none of ours."""
    return read(tags_in(row), str(row.get("name")))


def name_of(pool_id: str, node: int) -> str:
    """
    Return the name of a node's droplet, which becomes its hostname.

    >>> name_of("my_pool", 3)
    'skyward-my-pool-3'
    """
    return f"skyward-{re.sub('[^a-z0-9]+', '-', pool_id.lower())[:60]}-{node}"


def node_in(name: str) -> int | None:
    """
    Return the node that a droplet's name tells; None if it tells none.

    >>> node_in("skyward-p1-12"), node_in("web")
    (12, None)
    """
    return node_number(name.rpartition("-")[2])


def tags_in(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the tags in the row of a droplet; where they cannot be read, those that its name tells of."""
    tags, name = row.get("tags"), row.get("name")
    if isinstance(tags, list):
        return tuple(tag for tag in tags if isinstance(tag, str))
    ours = _NAME.fullmatch(name) if isinstance(name, str) else None
    return () if ours is None else (OURS, pool_tag(ours["pool"]))


def _rank(text: str) -> int:
    number = node_number(text)
    return -1 if number is None else number
