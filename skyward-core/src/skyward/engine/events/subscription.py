"""A handler of events, what it was given for, and what is refused as one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, TypeAlias

from attrs import define, frozen

from skyward.errors import ConfigError
from skyward.model.events.event import ALL, SkywardEvent
from skyward.model.fields.setting import nearest

__all__ = ["Handler", "Route", "Subscription", "check_handler", "check_type"]

Handler: TypeAlias = Callable[[Any], object]

_log = logging.getLogger("skyward.engine.events.event_dispatcher")


@define(eq=False)
class Subscription:
    """Hold a handler and the types it was given for."""

    types: tuple[type[SkywardEvent], ...]
    handler: Handler
    own: bool = False
    failed: bool = False

    @property
    def name(self) -> str:
        """Name the handler, for messages."""
        if self.own:
            return "the console" if "console" in type(getattr(self.handler, "__self__", None)).__module__ else "the log"
        return getattr(self.handler, "__qualname__", None) or type(self.handler).__qualname__

    def deliver(self, event: SkywardEvent) -> None:
        """Call the handler, and log the first time that it raises."""
        try:
            self.handler(event)
        except BaseException:  # SystemExit too: a handler never breaks the pool
            if not self.failed:
                self.failed = True
                _log.exception(
                    "handler.failed handler=%r event=%s: later failures are passed over", self.handler, event
                )


@frozen
class Route:
    """Hold the subscriptions to one type of event, its rank when too much waits, and whether the stored log has it."""

    subscribers: tuple[Subscription, ...]
    rank: int
    stored: bool = False


def check_type(kind: object) -> None:
    """
    Refuse what is no class of events.

    Args:
        kind: What was given as one.

    Raises:
        ConfigError: It is refused.
    """
    if isinstance(kind, type) and issubclass(kind, SkywardEvent):
        return
    near = nearest(kind, [one.__name__ for one in ALL])
    offer = f" Did you mean sky.{near}?" if near else ""
    raise ConfigError(f"event_type must be a class of events, such as sky.TaskCompleted, not {kind!r}.{offer}")


def check_handler(handler: object) -> None:
    """
    Refuse what cannot be called, or would only make a coroutine that is never awaited.

    Args:
        handler: What was given as one.

    Raises:
        ConfigError: It is refused.
    """
    if not callable(handler):
        raise ConfigError(f"handler must be a function that takes an event, not {handler!r}.")
    if iscoroutinefunction(handler) or iscoroutinefunction(type(handler).__call__):
        raise ConfigError(
            f"handler must be a plain function, and {handler!r} is a coroutine function.",
            hint="Hand the event to your loop with loop.call_soon_threadsafe.",
        )
