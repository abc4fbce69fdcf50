"""What follows a pool, from before its first machine until its handlers have had all events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from skyward.engine.events.event_dispatcher import Dispatcher
from skyward.engine.events.trails import Trails
from skyward.model.events.follower import Follower

_log = logging.getLogger(__name__)

FLUSHING = 5.0
"""Seconds for which what follows no more is given the events until then."""


class Following:
    """
    Pass the calls and events of a pool to its followers.

    Args:
        dispatcher: Where the pool's events come from.
        followers: Those that the pool itself has, before it is open.
    """

    def __init__(self, dispatcher: Dispatcher, followers: Iterable[tuple[str, Follower]]) -> None:
        self._dispatcher = dispatcher
        self._trails: Trails | None = None
        self._cancel: dict[Follower, Callable[[], None]] = {}
        self._own = tuple(followers)
        self._plugins: tuple[Follower, ...] = ()
        for _, follower in self._own:
            self._subscribe(follower)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(list(self._cancel))

    def begin(self, trails: Trails, followers: Iterable[tuple[str, Follower]]) -> None:
        """
        Follow the calls of a spec that is tried; the plugins of one that was tried before follow no more.

        Args:
            trails: Tells what becomes of calls.
            followers: Those of the spec's plugins.
        """
        self._leave(self._plugins)
        self._trails = trails
        named = tuple(followers)
        self._plugins = tuple(follower for _, follower in named)
        for name, follower in self._own:
            trails.add(name, follower)
        for name, follower in named:
            self._subscribe(follower)
            trails.add(name, follower)

    def add(self, name: str, follower: Follower) -> None:
        """Start following a pool that is open."""
        self._subscribe(follower)
        if self._trails is not None:
            self._trails.add(name, follower)

    def remove(self, follower: Follower) -> None:
        """Stop following the pool, once all events until now were delivered."""
        cancel = self._cancel.pop(follower, None)
        if cancel is None:
            return
        if self._trails is not None:
            self._trails.remove(follower)
        self._dispatcher.flush(FLUSHING)
        cancel()

    def _subscribe(self, follower: Follower) -> None:
        cancel: Callable[[], None] = lambda: None  # noqa: E731
        if follower.events:
            cancel = self._dispatcher.subscribe(tuple(follower.events), follower.happened, own=follower.own)
        self._cancel[follower] = cancel

    def _leave(self, followers: Iterable[Follower]) -> None:
        for follower in followers:
            if follower not in self._cancel:
                continue
            self.remove(follower)
            try:
                follower.left()
            except Exception:
                _log.exception("follower.failed method=left")
