"""
What a program receives of a pool: its events, and a timeline of its calls.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from skyward.engine.events.timeline import Timeline
    from skyward.engine.pool.opening import OpenPool
    from skyward.model.events.event import SkywardEvent
    from skyward.model.events.follower import Follower
    from skyward.plan.config.request import Request


class Observed:
    """Tell what happens in a pool; the part of a pool that does."""

    _open: OpenPool | None
    _handlers: list[tuple[type[Any], Callable[[Any], object]]]
    _followers: list[tuple[str, Follower]]
    _request: Request

    def on(self, event_type: type[SkywardEvent], handler: Callable[[Any], object]) -> Self:
        """
        Call a handler with each event of a type; works before and while the pool is open.

        Args:
            event_type: An event class; `sky.SkywardEvent` means all.
            handler: Called in the dispatcher's thread.
        """
        if self._open is not None:
            self._open.dispatcher.subscribe(event_type, handler)
        else:
            self._handlers.append((event_type, handler))
        return self

    def trace(self, path: str | os.PathLike[str]) -> Timeline:
        """
        Record a timeline of the pool's calls, for Perfetto and Chrome; works before and while the pool is open.

        Begun before the pool is open, it shows how its machines came to be as well.

        Args:
            path: The file, which is replaced. It is written while the pool runs.

        Returns:
            What ends the recording: with `close()`, its `with` block, or the pool, whichever comes first.

        Raises:
            ConfigError: If the file cannot be written.

        >>> import json, pathlib, tempfile
        >>> import skyward as sky
        >>> path = pathlib.Path(tempfile.mkdtemp(), "trace.json")
        >>> with sky.Compute(console="silent") as pool:
        ...     with pool.trace(path):
        ...         pool.map(abs, [-1, -2])
        [1, 2]
        >>> len([line for line in json.loads(path.read_text()) if line["ph"] == "X" and line["name"] == "abs"])
        2
        """
        from skyward.engine.events.timeline import Timeline

        timeline = Timeline(path, self._request.name)
        if self._open is None:
            entry = ("trace", timeline)
            self._followers.append(entry)

            def detach() -> None:
                if entry in self._followers:
                    self._followers.remove(entry)
                if self._open is not None:
                    self._open.following.remove(timeline)

            timeline.detach = detach
            return timeline
        opened = self._open
        opened.following.add("trace", timeline)
        for event in opened.running.reporting.readiness(opened.running.ready_shells()):
            timeline.happened(event)
        timeline.detach = lambda: opened.following.remove(timeline)
        return timeline
