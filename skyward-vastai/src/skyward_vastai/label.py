"""Whose a machine is, in the one text that Vast.ai lets us write on it."""

from __future__ import annotations

from urllib.parse import quote, unquote

from skyward.provider import Tags

__all__ = ["label", "tags_of"]

LONGEST = 256
"""Characters of the longest label."""

_MARK = "skyward"
_PARTS = 7


def label(tags: Tags) -> str:
    """
    Write the label of a machine; what does not fit is cut from the names of owner and pool.

    There is no expiry in it: to put it off, every machine would have to be labelled anew, one call after the other.

    Args:
        tags: Whose it is.

    >>> label(Tags(pool_id="a1", pool_name="my pool", node=3, owner="me@box", client="c", token="t"))
    'skyward/a1/3/t/c/me@box/my%20pool'
    """
    node = "" if tags.node is None else str(tags.node)
    front = "/".join((_MARK, *(quote(part, safe="") for part in (tags.pool_id, node, tags.token, tags.client))))
    room = LONGEST - len(front) - 2
    owner = _fitting(tags.owner, room)
    return f"{front}/{owner}/{_fitting(tags.pool_name, room - len(owner))}"


def tags_of(text: str | None) -> Tags | None:
    """
    Read the label of a machine; None if it is none of ours.

    Args:
        text: The label.

    >>> tags_of("skyward/a1/3/t/c/me@box/my%20pool").pool_name
    'my pool'
    >>> tags_of("web") is None
    True
    """
    parts = [unquote(part) for part in (text or "").split("/")]
    if len(parts) != _PARTS or parts[0] != _MARK or not parts[1]:
        return None
    _, pool_id, node, token, client, owner, pool_name = parts
    number = int(node) if node.isascii() and node.isdigit() else None
    return Tags(pool_id=pool_id, pool_name=pool_name, node=number, owner=owner, client=client, token=token)


def _fitting(text: str, room: int) -> str:
    """Quote the beginning of a text that has room."""
    written = ""
    for character in text:
        more = quote(character, safe="@")
        if len(written) + len(more) > room:
            break
        written += more
    return written
