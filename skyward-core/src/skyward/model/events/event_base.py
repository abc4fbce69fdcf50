"""
What every event has.
"""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import Factory, frozen

if TYPE_CHECKING:
    from skyward.model.instances.instance import InstanceInfo


@frozen(kw_only=True, getstate_setstate=False)
class SkywardEvent:
    """
    Be the base of every event, also of the user's own.

    Args:
        at: When it happened, in seconds since the epoch by the client's clock.
        instance: The instance it happened to, where it concerns one.

    >>> import attrs
    >>> @attrs.frozen(kw_only=True)
    ... class EpochDone(SkywardEvent):
    ...     epoch: int
    >>> EpochDone(epoch=3, at=0.0)
    EpochDone(at=0.0, instance=None, epoch=3)
    """

    at: float = Factory(time)
    instance: InstanceInfo | None = None

    # attrs would write these for the fields it knows; a user's dataclass that extends this one has others too.
    def __getstate__(self) -> dict[str, Any]:
        slots = (name for cls in type(self).__mro__ for name in cls.__dict__.get("__slots__", ()))
        state = {name: getattr(self, name) for name in slots if name != "__weakref__" and hasattr(self, name)}
        return state | getattr(self, "__dict__", {})

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)


Callback: TypeAlias = Callable[[SkywardEvent], SkywardEvent | None]
