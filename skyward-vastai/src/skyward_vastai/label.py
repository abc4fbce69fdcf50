"""Whose a machine is, in the one text that Vast.ai lets us write on it."""

from __future__ import annotations

from functools import partial
from urllib.parse import quote, unquote

from skyward.provider import Tags, fitting, node_number

__all__ = ["label", "tags_of"]

LONGEST = 256
"""Characters of the longest label."""

_MARK = "skyward"
_PARTS = 7


def label(tags: Tags) -> str:
    """
    Write the label of a machine; what does not fit is cut from the names of owner and pool.

    There is no expiry in it: to put it off, every machine would have to be labelled again, one call after the other.

    Args:
        tags: Whose it is.

    >>> label(Tags(pool_id="a1", pool_name="my pool", node=3, owner="me@box", client="c", token="t"))
    'skyward/a1/3/t/c/me@box/my%20pool'
    """
    node = "" if tags.node is None else str(tags.node)
    front = "/".join((_MARK, *(quote(part, safe="") for part in (tags.pool_id, node, tags.token, tags.client))))
    room = LONGEST - len(front) - 2
    owner = fitting(tags.owner, room, _quoted)
    return f"{front}/{owner}/{fitting(tags.pool_name, room - len(owner), _quoted)}"


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
    return Tags(pool_id=pool_id, pool_name=pool_name, node=node_number(node), owner=owner, client=client, token=token)


_quoted = partial(quote, safe="@")
