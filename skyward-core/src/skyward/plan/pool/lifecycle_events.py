"""What may happen to a pool and its nodes, and what there is to do then: the events and commands of its life."""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen


@frozen
class Opened:
    """The pool was entered; the `places` of the nodes that an earlier client has left are taken as they are."""

    places: tuple[int, ...] = ()


@frozen
class Asked:
    """A cloud is being asked for the machines of some nodes."""

    nodes: tuple[int, ...]


@frozen
class Launched:
    """A node's machine is there."""

    node: int


@frozen
class Started:
    """A node takes calls."""

    node: int


@frozen
class StartFailed:
    """A node could not be made ready; whether that `counts` among its failures in a row."""

    node: int
    reason: str
    final: bool = False
    counts: bool = True


@frozen
class Lost:
    """A ready node went away."""

    node: int
    reason: str


@frozen
class Leaves:
    """A ready node's machine is about to be reclaimed; it drains by itself, and its place is free."""

    node: int


@frozen
class Drains:
    """A ready node is about to leave a machine of its own, which its place may get again; it drains by itself."""

    node: int


@frozen
class Vacated:
    """A node that drained has left its machine, which can be taken again."""

    node: int


@frozen
class Resized:
    """The user, or the autoscaler, wants another number of nodes."""

    desired: int
    removable: tuple[int, ...] = ()


@frozen
class Ended:
    """A leaving node's machine is terminated."""

    node: int


@frozen
class Closed:
    """The pool was left."""


Event: TypeAlias = (
    Opened | Asked | Launched | Started | StartFailed | Lost | Leaves | Drains | Vacated | Resized | Ended | Closed
)


@frozen
class Launch:
    """Ask for machines."""

    nodes: tuple[int, ...]


@frozen
class Start:
    """Make a machine into a node."""

    node: int


@frozen
class Terminate:
    """Give a node's machine back."""

    node: int
    reason: str


@frozen
class Announce:
    """Report that the pool is usable."""


@frozen
class GiveUp:
    """Report that the pool cannot be opened."""

    reason: str


Command: TypeAlias = Launch | Start | Terminate | Announce | GiveUp
