"""A pool that a server has started: opened, used and ended in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from attrs import define, field, frozen

from skyward.engine.calls.waiters import Future
from skyward.errors import ConfigError, PoolEndedError, SkywardError
from skyward.function import function
from skyward.model.events.event import Error, SkywardEvent
from skyward.node.task.script import run_script
from skyward.pool import Pool
from skyward_mcp.lines import Lines

__all__ = ["On", "Script", "StartedPool", "State"]

State: TypeAlias = Literal["opening", "open", "ending", "over", "failed", "detached"]
On: TypeAlias = Literal["head", "all"]
"""Where a script runs: on the first node, or on each."""


@frozen(kw_only=True)
class Script:
    """
    Hold what an agent wants run.

    Args:
        source: The program.
        words: What is typed after its name.
        variables: What its environment has besides.
        on: Where it runs.
    """

    source: str
    words: Sequence[str] = ()
    variables: Mapping[str, str] = field(factory=dict)
    on: On = "head"


@define(eq=False)
class Run:
    """
    Hold a script on a node.

    Args:
        node: Index of the node.
        future: Its exit code.
    """

    node: int
    future: Future[int]

    def said(self) -> dict[str, Any]:
        """Return what became of it, as plain values."""
        if not self.future.done():
            return {"node": self.node, "state": "running"}
        error = self.future.exception()
        if error is not None:
            return {"node": self.node, "state": "failed", "error": f"{type(error).__name__}: {error}"}
        return {"node": self.node, "state": "ended", "exit_code": self.future.result()}


class StartedPool:
    """
    Open a pool and run scripts on it, until they have ended or its end is asked for.

    Args:
        name: The pool's name.
        pool: The pool, not open.
        most: What it may cost, in USD.
        lease: Seconds that it may go on without this server; None ends it with the server.
        keep: Whether it stays when its scripts have ended.
        script: The first script; None for none.
        over: Called with this and what it has cost in USD, once it is over and not detached.
    """

    def __init__(
        self,
        *,
        name: str,
        pool: Pool,
        most: float,
        lease: float | None,
        keep: bool,
        script: Script | None,
        over: Callable[[StartedPool, float], None],
    ) -> None:
        self.name, self.most, self.lease, self.keep = name, most, lease, keep
        self.lines = Lines()
        self.state: State = "opening"
        self.error: str | None = None
        self.opened = False
        self._pool, self._script, self._over = pool, script, over
        self._runs: list[Run] = []
        self._lock = threading.Lock()
        self._enough = threading.Event()
        self._why: SkywardError | None = None
        self._broken: Exception | None = None
        self._leaving = False
        pool.on(SkywardEvent, self._receive)
        self._thread = threading.Thread(target=self._live, name=f"skyward-mcp-{name}", daemon=True)

    def start(self) -> None:
        """Begin to open it."""
        self._thread.start()

    def run(self, script: Script) -> None:
        """
        Run one more script.

        Args:
            script: The script.

        Raises:
            ConfigError: If the pool is not open.
        """
        with self._lock:
            if self.state != "open":
                raise ConfigError(
                    f"The pool {self.name!r} is {self.state}; a script runs on one that is open.",
                    hint="While it is opening, ask for its status again; where it is over, start another one.",
                )
            self._submit(script)

    def end(self, *, leave: bool = False) -> None:
        """
        Ask for its end, whatever it does; returns at once.

        Args:
            leave: Whether one that has a lease and is open is detached instead.
        """
        with self._lock:
            if self.state in ("over", "failed", "detached"):
                return
            self._leaving = leave and self.lease is not None and self.state == "open"
            opening = self.state == "opening"
            self._why = PoolEndedError(f"The pool {self.name!r} was ended by its server.", pool=self.name)
            self.state = "ending"
            self._enough.set()
        if opening:
            self._pool.break_off()

    def join(self, timeout: float) -> bool:
        """
        Wait for its end, and return whether it is over.

        Args:
            timeout: Seconds to wait at most.
        """
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def said(self) -> dict[str, Any]:
        """Return what it is at this moment, as plain values."""
        cost, receipt = self._pool.cost, self._pool.receipt
        facts: dict[str, Any] = {
            "pool": self.name,
            "state": self.state,
            "budget": self.most,
            "cost": cost.accumulated if receipt is None else receipt.total_cost,
            "hourly_rate": cost.hourly_rate if receipt is None else 0.0,
            "nodes_ready": self._pool.current_nodes(),
            "scripts": [run.said() for run in list(self._runs)],
        }
        if self.error is not None:
            facts["error"] = self.error
        if self.lease is not None:
            facts["lease"] = self.lease
        return facts

    # In its thread, and in that of its events.

    def _live(self) -> None:
        try:
            self._pool.open()
        except BaseException as error:  # broken off, or whatever a provider raises: the server goes on
            ended = self._why is not None and not _notes(error)
            self._finish("over" if ended else "failed", None if ended else error)
            return
        try:
            with self._lock:
                self.opened = True
                if self._why is None:
                    self.state = "open"
                    self._begin()
            self._enough.wait()
        except Exception as error:
            self._broken = error
        self._leave()

    def _begin(self) -> None:
        """Run the first script; of a pool that was attached, go on with those it has."""
        self._runs = [Run(node=call.node or 0, future=call.future) for call in self._pool.calls()]
        for run in self._runs:
            run.future.add_done_callback(self._look)
        if self._script is not None:
            self._submit(self._script)
        self._look()

    def _submit(self, script: Script) -> None:
        call = function(run_script)("script.py", script.source.encode(), tuple(script.words), dict(script.variables))
        nodes = range(self._pool.instance_count if script.on == "all" else 1)
        runs = [Run(node=node, future=self._pool.run_async(call, target=node)) for node in nodes]
        # All of them, before one that has ended already is looked at.
        self._runs += runs
        for run in runs:
            run.future.add_done_callback(self._look)

    def _look(self, _: object = None) -> None:
        if not self.keep and all(run.future.done() for run in list(self._runs)):
            self._enough.set()

    def _receive(self, event: SkywardEvent) -> None:
        self.lines.receive(event)
        # Its budget is used up, or another program has ended it: nothing of it runs any more.
        if isinstance(event, Error) and event.fatal:
            self._enough.set()

    def _leave(self) -> None:
        """Leave it: detached, or with its machines terminated."""
        if self._leaving:
            try:
                self._pool.detach(lease=self.lease)
            except Exception as refusal:
                self.lines.add(f"skyward: it cannot be detached, and is ended: {refusal}")
            else:
                self._finish("detached", None)
                return
        with self._lock:
            self.state = "ending"
        error = self._broken
        try:
            self._pool.close(self._why or error)
        except Exception as raised:
            error = raised
        # What could not be terminated is a note on what the pool is left by.
        if notes := _notes(self._why):
            error = SkywardError(notes, pool=self.name)
        self._finish("over" if error is None else "failed", error)

    def _finish(self, state: State, error: BaseException | None) -> None:
        if error is not None:
            self.error = f"{type(error).__name__}: {error}"
            self.lines.add(f"skyward: {self.error}")
        if state != "detached":
            receipt = self._pool.receipt
            self._over(self, self._pool.cost.accumulated if receipt is None else receipt.total_cost)
        with self._lock:
            self.state = state
        self.lines.close()


def _notes(error: BaseException | None) -> str:
    """Return the notes of an error as one text; empty without any."""
    return " ".join(getattr(error, "__notes__", ()))
