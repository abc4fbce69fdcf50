"""
What happens to the instances of a pool, and what is to be done about it: the events and commands of their lifecycle.
"""

from __future__ import annotations

from typing import TypeAlias

from attrs import frozen

from skyward.model.instances.machine import Instance
from skyward.plan.instances.instance_record import Key

__all__ = [
    "LaunchAnswered",
    "Assign",
    "Began",
    "Bill",
    "Busy",
    "CloudLeft",
    "Command",
    "Confirmed",
    "EndBill",
    "Event",
    "Gone",
    "Lingers",
    "Listed",
    "LaunchUnanswered",
    "BecameReady",
    "NotRunning",
    "Reclaimed",
    "LaunchRefused",
    "Released",
    "LaunchRequested",
    "Surplus",
    "TerminateInstances",
    "Terminated",
    "TerminationFailed",
    "TerminationRefused",
]


@frozen(kw_only=True)
class LaunchRequested:
    """Instances are about to be asked for, one for each node; `rate` is what one costs, in USD an hour."""

    token: str
    cloud: str
    nodes: tuple[int, ...]
    rate: float
    at: float


@frozen(kw_only=True)
class LaunchAnswered:
    """A launch was answered, with instances of this pool."""

    token: str
    instances: tuple[Instance, ...]
    at: float


@frozen(kw_only=True)
class LaunchRefused:
    """A launch was refused: it rented nothing."""

    token: str
    at: float


@frozen(kw_only=True)
class LaunchUnanswered:
    """The answer to a launch was lost: what it rented, if anything, may be listed late."""

    token: str
    at: float


@frozen(kw_only=True)
class Listed:
    """A cloud listed the pool's instances; one may take `patience` seconds until it runs."""

    cloud: str
    instances: tuple[Instance, ...]
    at: float
    patience: float


@frozen
class BecameReady:
    """An instance's node takes calls."""

    key: Key


@frozen
class Reclaimed:
    """An instance is about to be reclaimed by its cloud: its node drains."""

    key: Key


@frozen
class Released:
    """A node is done with its instance."""

    key: Key


@frozen
class Lingers:
    """A node is done with its instance, which waits for the next pool."""

    key: Key


@frozen
class Terminated:
    """The end of instances is confirmed."""

    keys: tuple[Key, ...]


@frozen
class TerminationRefused:
    """The cloud did not terminate an instance, which is asked to shut itself down."""

    key: Key
    reason: str


@frozen
class TerminationFailed:
    """Instances may still exist, although their termination was asked for."""

    keys: tuple[Key, ...]
    reason: str


@frozen
class CloudLeft:
    """The pool leaves a cloud: no node is there any more."""

    cloud: str


Event: TypeAlias = (
    LaunchRequested
    | LaunchAnswered
    | LaunchRefused
    | LaunchUnanswered
    | Listed
    | BecameReady
    | Reclaimed
    | Released
    | Lingers
    | Terminated
    | TerminationRefused
    | TerminationFailed
    | CloudLeft
)


@frozen
class Assign:
    """Give an instance to the node that it was rented for."""

    instance: Instance


@frozen
class Surplus:
    """Terminate an instance whose node has another one by now."""

    instance: Instance


@frozen
class Began:
    """Notify a node that its instance runs."""

    key: Key
    instance: Instance


@frozen
class Busy:
    """Notify a node of what its instance does before it runs."""

    key: Key
    doing: str


@frozen
class Gone:
    """Notify a node that its instance is gone."""

    key: Key
    reason: str


@frozen
class NotRunning:
    """Notify a node that its instance should run by now."""

    key: Key


@frozen
class Bill:
    """Count an orphan on the bill; `rate` is what it was asked for at, if that is known."""

    instance: Instance
    rate: float | None


@frozen
class EndBill:
    """Count an orphan on the bill no more."""

    key: Key


@frozen
class Confirmed:
    """Report that an instance whose termination had failed is gone."""

    key: Key


@frozen
class TerminateInstances:
    """Ask the cloud to terminate instances."""

    keys: tuple[Key, ...]


Command: TypeAlias = (
    Assign | Surplus | Began | Busy | Gone | NotRunning | Bill | EndBill | Confirmed | TerminateInstances
)
