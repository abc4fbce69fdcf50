"""Whether a node of a pool may be rented from another cloud than the pool was opened on."""

from __future__ import annotations

from skyward.model.spec.spec import Spec

__all__ = ["keeps"]

ALIKE = ("accelerator", "architecture", "image", "plugins")
"""What two specs have to ask for alike, so that a node of one does in a pool of the other."""


def keeps(home: Spec, other: Spec, *, collective: bool, rents: bool) -> str:
    """
    Return what keeps the nodes of a pool from being rented by another of its specs; nothing if they may be.

    Args:
        home: The spec that the pool was opened by.
        other: The other spec.
        collective: Whether the nodes have to reach each other, for a plugin that makes one job of all ranks or by
            `cluster=True`.
        rents: Whether machines are rented by both of them, rather than there anyway.

    >>> keeps(Spec(accelerator="H100"), Spec(accelerator="H100"), collective=False, rents=True)
    ''
    >>> keeps(Spec(accelerator="H100"), Spec(accelerator="A100"), collective=False, rents=True)
    'its spec asks for another accelerator'
    """
    if collective:
        return "its nodes have to reach each other"
    if home.region is not None or other.region is not None:
        return "region= says where the nodes are to be"
    if not rents:
        return "not both of them rent machines"
    for name in ALIKE:
        if getattr(home, name) != getattr(other, name):
            article = "other" if name == "plugins" else "another"
            return f"its spec asks for {article} {name}"
    return ""
