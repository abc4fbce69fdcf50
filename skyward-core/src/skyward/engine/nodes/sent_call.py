"""What a link knows of a call that its node was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from skyward.engine.calls.call import CapturedFunction


class SentCall(Protocol):
    """A call that the node was sent, or an attempt of one that it may still answer."""

    id: int
    lane: int
    sent: int
    function: CapturedFunction
