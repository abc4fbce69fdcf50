"""Events that tasks emit: opened where a handler listens, and no faster than handlers take them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from skyward.engine.calls.unopened import unopened
from skyward.link.emitted import class_name
from skyward.link.payload import load

if TYPE_CHECKING:
    from skyward.engine.events.event_dispatcher import Dispatcher
    from skyward.engine.nodes.node_shell import NodeShell
    from skyward.link.emitted import Emitted

OPENED_AT_ONCE = 256
"""Events of tasks that may wait to be unpickled."""

UNOPENED_LIMIT = 100
"""Classes of events that could not be opened, at most so many of which are logged."""


class EmittedEvents:
    """
    Pass on what tasks of one pool emit, and hold nodes back while handlers are behind.

    Args:
        dispatcher: Where it goes.
        error: Reports what cannot be opened.
    """

    def __init__(self, dispatcher: Dispatcher, error: Callable[[str], None]) -> None:
        self._dispatcher = dispatcher
        self._error = error
        self._unpickling: ThreadPoolExecutor | None = None
        self._held: set[NodeShell] = set()
        self._hears_drained = False
        self._closed = False
        self._handed_over = 0
        self._passed_on = 0
        # Logged once each: a node can send any number of them.
        self._unopened: set[str] = set()

    def behind(self, shell: NodeShell) -> bool:
        """Return whether handlers are behind with what nodes send; the node resumes when they are not any more."""
        if not self._hears_drained:
            # Before it is asked whether there is pressure, which may be gone a moment later.
            self._hears_drained = True
            self._dispatcher.on_drained(lambda: shell.post(self._go_on))
        # Likewise.
        self._held.add(shell)
        if self._dispatcher.pressure or self._handed_over - self._passed_on >= OPENED_AT_ONCE:
            return True
        self._held.discard(shell)
        return False

    def take(self, shell: NodeShell, emitted: Emitted) -> None:
        """
        Pass on an event that a task emitted.

        Its pickle is opened only where a handler listens, in order, in a thread of its own.
        """
        if self._closed or (emitted.event is None and not self._dispatcher.asks(emitted.names)):
            return
        if self._unpickling is None:
            self._unpickling = ThreadPoolExecutor(max_workers=1, thread_name_prefix="skyward-emitted")
        self._handed_over += 1
        self._unpickling.submit(self._open, shell, emitted)

    def close(self) -> None:
        """Pass on what is still to be unpickled; what comes later is dropped."""
        self._closed = True
        if self._unpickling is not None:
            self._unpickling.shutdown()

    def _go_on(self) -> None:
        held, self._held = self._held, set()
        for shell in held:
            shell.go_on()

    def _open(self, shell: NodeShell, emitted: Emitted) -> None:
        self._pass_on(shell.info, shell.ahead, emitted)
        # In this thread alone.
        self._passed_on += 1
        if self._held and self._handed_over - self._passed_on <= OPENED_AT_ONCE // 2:
            shell.post(self._go_on)

    def _pass_on(self, info: Any, ahead: float, emitted: Emitted) -> None:
        try:
            event: Any = emitted.event or load(emitted.payload)
            if emitted.event is None and class_name(type(event)) != emitted.names[0]:
                raise TypeError(f"it says it is a {emitted.names[0]}, and is a {class_name(type(event))}")
            # Nothing else has it yet; one of the user's own classes may not be rebuilt as attrs does.
            object.__setattr__(event, "at", event.at - ahead)
            if event.instance is None:
                object.__setattr__(event, "instance", info)
            self._dispatcher.publish(event)
        except Exception as error:
            name = emitted.names[0] if emitted.names else ""
            if name not in self._unopened and len(self._unopened) < UNOPENED_LIMIT:
                self._unopened.add(name)
                self._error(unopened(f"An event that a task emitted, a {name[:200]},", error))
