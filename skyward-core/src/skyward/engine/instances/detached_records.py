"""Which pools of this user are detached, how their machines are reached, and which calls were left there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import attrs
from attrs import evolve, frozen

from skyward.engine.instances.lingering_records import LINGERING, LeftMachine
from skyward.engine.instances.provider_recipe import ProviderRecipe
from skyward.engine.instances.record_folder import RecordFolder
from skyward.link.frames import Frame
from skyward.link.payload import Payload
from skyward.model.spec.options import Options
from skyward.model.spec.spec import Spec
from skyward.plan.instances.detached_pool import Detached

__all__ = ["DETACHED", "DetachedNode", "DetachedPool", "Inheritance", "KeptAnswer", "LeftCall", "forget_detached"]


STREAM = "it gave its items to the client that died"
FED = "it took items from the client that died"
"""Why calls can have no result without their client, wherever they are."""


@frozen(kw_only=True)
class LeftCall:
    """
    Hold a call that was left on a node.

    Args:
        id: The id of its attempt.
        function: The function's name.
        lane: The lane that it is in.
        timeout: Seconds that it may run; 0 for no limit.
        lost: Why it can have no result any more; empty while it may.
    """

    id: int
    function: str
    lane: int = 0
    timeout: float = 0.0
    lost: str = ""


class KeptAnswer(NamedTuple):
    """The RESULT frame of a call, header and body, and what travelled with it."""

    id: int
    frame: bytes
    payload: Payload | None


@frozen(kw_only=True)
class DetachedNode:
    """
    Hold a node that was left.

    Args:
        machine: Its machine.
        sessions: What its agent lets in the next client by, one of them.
        calls: The calls that were on it, oldest first.
    """

    machine: LeftMachine
    sessions: tuple[str, ...] = attrs.field(repr=False)
    calls: tuple[LeftCall, ...]


@frozen(kw_only=True)
class DetachedPool:
    """
    Hold what it takes to go on with a detached pool.

    Args:
        spec: What it was made of, without its provider.
        provider: How its provider is made.
        options: How it behaves, less what is of its program alone.
        private_key: What logs in at its machines, as a text.
        nodes: Its nodes.
        shared: What the machines of each region share, as their provider made it.
        members: The latest version of the members that its nodes know.
        lost: Calls whose nodes could not be left.
        last_call: The highest id of a task that it has had.
    """

    spec: Spec
    provider: ProviderRecipe
    options: Options
    private_key: str = attrs.field(repr=False)
    nodes: tuple[DetachedNode, ...]
    shared: tuple[tuple[str | None, Any], ...]
    members: int
    lost: tuple[LeftCall, ...] = ()
    last_call: int = 0

    def whole_spec(self) -> Spec:
        """Return what it was made of."""
        return evolve(self.spec, provider=self.provider.make())


@frozen(kw_only=True, eq=False)
class Inheritance:
    """
    Say what a pool has of an earlier client.

    Args:
        nodes: The calls of each node, by its index.
        lost: Calls whose nodes are lost.
        last_call: The highest id of a task that there has been.
        answers: Results that an earlier client had and did not use, by their calls: each a frame and its buffers.
        owned: Whether that client died without a word, so that nodes may have more calls than these, and others not.
    """

    nodes: Mapping[int, tuple[LeftCall, ...]]
    lost: tuple[LeftCall, ...] = ()
    last_call: int = 0
    answers: Mapping[int, tuple[Frame, list[bytes]]] = attrs.field(factory=dict)
    owned: bool = False


def _dumps(pool: DetachedPool) -> bytes:
    # Late, because few programs detach. A provider may be a class of the program itself, and goes by value then.
    import cloudpickle

    data: bytes = cloudpickle.dumps(pool)
    return data


DETACHED: RecordFolder[Detached, DetachedPool] = RecordFolder("detached", Detached, DetachedPool, _dumps)
"""The pools that are detached, or whose lease has ended."""


def forget_detached(pool_id: str) -> None:
    """Remove what is known of a pool that was detached, also for the one that would release what its machines share."""
    DETACHED.forget((pool_id,))
    LINGERING.forget((pool_id,))
