"""
Pools: the nodes, and the right-hand side of the operators.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Token
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeVar, Unpack, overload

from skyward.detachable import Detachable
from skyward.errors import PoolClosedError, SkywardError, UsageError
from skyward.mapper import Mapper
from skyward.model.fields.keywords import PoolKeywords
from skyward.model.fields.port import port
from skyward.model.instances.cost_report import Cost, Receipt
from skyward.model.instances.worker_stacks import Stacks
from skyward.model.spec.nodes import NodeSpec
from skyward.model.spec.options import Options
from skyward.model.spec.spec import Spec
from skyward.observed import Observed
from skyward.operands import RightOperand
from skyward.pending import PendingFunction, PendingFunctionGroup, PendingStream, current_pool, single
from skyward.plan.config.request import Request, request
from skyward.plan.config.signature import pool_signature
from skyward.pool_table import PoolTable
from skyward.shared_state import SharedState

if TYPE_CHECKING:
    from skyward.collections.named_collections import Collections
    from skyward.engine.calls.waiters import Future
    from skyward.engine.instances.meter import Meter
    from skyward.engine.nodes.forwarding import Forward
    from skyward.engine.pool.opening import OpenPool
    from skyward.engine.pool.running import Running
    from skyward.link.refs import Ref
    from skyward.model.events.follower import Follower

T = TypeVar("T")
Target = int | Literal["head"] | None
_Off = Literal[False]


class Pool(RightOperand, Mapper, SharedState, Observed, Detachable, PoolTable):
    """
    Nodes that decorated functions run on, for the time of a `with` block.

    Building one starts nothing; entering it gets the nodes, and leaving it terminates them, always.
    `sky.Compute` is its usual name.

    Args:
        specs: What hardware, in order of preference; or give the fields of one spec as keywords.
        name: A pool of `skyward.toml`.
        options: How the pool behaves; its fields can also be given as keywords.
        keywords: Fields of `Spec`, `Options` and `Worker`. Those that most pools need come first: `provider` (where),
            `accelerator` and `nodes` (what and how many; `(2, 8)` grows and shrinks), `image` (Python packages and
            files), `plugins` (frameworks), `allocation` (spot or on demand), `max_hourly_cost` and `budget` (USD an
            hour for each node, and in all), `concurrency` (calls at a time on each node).

    Raises:
        UsageError: If the ways to ask are mixed, or a keyword is unknown.
        ConfigError: If a value makes no sense.

    >>> import skyward as sky
    >>> @sky.function
    ... def double(x: int) -> int:
    ...     return 2 * x
    >>> with sky.Compute(nodes=2, console="silent") as pool:
    ...     double(4) >> pool
    ...     double(4) @ pool
    ...     pool.map(double, range(5))
    8
    [8, 8]
    [0, 2, 4, 6, 8]
    """

    # Type checkers read the keywords from their table, `help` and notebooks from here.
    __signature__ = pool_signature()

    def __init__(
        self,
        *specs: Spec,
        name: str | None = None,
        options: Options | None = None,
        **keywords: Unpack[PoolKeywords],
    ) -> None:
        self._begin(request(specs, keywords, name=name, options=options, named=_read_named))

    @classmethod
    def of(cls, request: Request) -> Self:
        """Return the pool that a request asks for."""
        pool = cls.__new__(cls)
        pool._begin(request)
        return pool

    def _begin(self, request: Request) -> None:
        self._request = request
        self._open: OpenPool | None = None
        self._begun: list[Running] = []
        self._meter: Meter | None = None
        self._used = False
        self._entering = threading.Lock()
        self._handlers: list[tuple[type[Any], Callable[[Any], object]]] = []
        self._followers: list[tuple[str, Follower]] = []
        self._tokens: list[Token[Any]] = []

    def run(self, pending: PendingFunction[T], *, target: Target = None) -> T:
        """
        Run a call on one node, and wait for its result; the same as `pending >> pool`.

        Args:
            pending: The call.
            target: `"head"` or the index of the node to run on; None takes any.

        Raises:
            Exception: What the function raised, as itself.
            ConfigError: If there is no such node.
        """
        from skyward.engine.calls import operations

        running = self._running
        return operations.run(running, single(pending), node=running.check_node(target))

    def run_async(self, pending: PendingFunction[T], *, target: Target = None) -> Future[T]:
        """
        Run a call on one node, and promise its result; the same as `pending > pool`.

        Args:
            pending: The call.
            target: `"head"` or the index of the node to run on; None takes any.
        """
        from skyward.engine.calls import operations

        running = self._running
        return operations.run_async(running, single(pending), node=running.check_node(target))

    @overload
    def broadcast(self, pending: PendingFunction[T], *, return_exceptions: _Off = ...) -> list[T]: ...
    @overload
    def broadcast(self, pending: PendingFunction[T], *, return_exceptions: bool) -> list[T | BaseException]: ...
    def broadcast(self, pending: PendingFunction[Any], *, return_exceptions: bool = False) -> list[Any]:
        """
        Run a call on every rank of every ready node; the same as `pending @ pool`.

        Args:
            pending: The call.
            return_exceptions: Whether what is raised takes its place among the results instead of being raised.

        Returns:
            One result a rank, in the order of ranks.
        """
        from skyward.engine.calls import operations

        return operations.broadcast(self._running, single(pending), keep_errors=return_exceptions)

    @overload
    def run_parallel(self, group: PendingStream[T]) -> Iterator[T]: ...
    @overload
    def run_parallel(self, group: PendingFunctionGroup[*tuple[T, ...]]) -> tuple[T, ...]: ...
    def run_parallel(self, group: Any) -> Any:
        """
        Run the calls of a group side by side; the same as `group >> pool`.

        Args:
            group: Made by `&` or `gather`.

        Returns:
            A tuple of results in the order of the calls, or an iterator for a group made with `stream=True`.
        """
        from skyward.engine.calls import operations

        if isinstance(group, PendingStream):
            return operations.stream_all(
                self._running, group.calls, ordered=group.ordered, keep_errors=group.return_exceptions
            )
        if not isinstance(group, PendingFunctionGroup):
            raise UsageError(f"run_parallel takes a group made by `&` or `sky.gather`, not a {type(group).__name__}.")
        return tuple(operations.run_all(self._running, group.calls, keep_errors=group.return_exceptions))

    run_batch = run_parallel

    def put(self, value: T) -> Ref[T]:
        """Keep a value for any number of calls of this pool, sent once to each node that needs it; see `sky.put`."""
        ref: Ref[T] = self._running.maker.put(value)
        return ref

    @property
    def name(self) -> str:
        """Name the pool as its messages do."""
        return self._request.name

    @property
    def is_active(self) -> bool:
        """Return whether the pool is open."""
        return self._open is not None

    @property
    def instance_count(self) -> int:
        """Count the machines there are, ready or not."""
        return self._open.running.instance_count if self._open else 0

    @property
    def concurrency(self) -> int:
        """Count the calls that a rank runs at once."""
        return self._request.options.workers.concurrency

    @property
    def cost(self) -> Cost:
        """Return what the pool costs: until now while it is open, in all once it was left, nothing before."""
        return self._meter.cost() if self._meter is not None else Cost()

    @property
    def receipt(self) -> Receipt | None:
        """Return where money and time went, once the pool was left; None until then."""
        return self._meter.receipt if self._meter is not None else None

    def current_nodes(self) -> int:
        """Count the nodes that take calls now."""
        return self._open.running.ready_nodes if self._open else 0

    def snapshot(self) -> dict[str, Any]:
        """Return what the pool is at this moment, as plain values."""
        return {"name": self.name, "active": self.is_active, **(self._open.running.snapshot() if self._open else {})}

    def stacks(self, *, node: int | Literal["head"] | None = None) -> Stacks:
        """
        Ask where the workers are now, for a call that hangs; also while C code holds their interpreters.

        Args:
            node: The only node to ask, by its index, or `"head"`; None for all.

        Returns:
            Threads, asyncio tasks and calls by node and process; `print` shows them like a traceback. A node that does
            not answer within 5 s is listed with the reason.

        Raises:
            ConfigError: If there is no such node.
        """
        from skyward.engine.pool.pool_stacks import pool_stacks

        running = self._running
        only = running.check_node(node, "node")
        return running.engine.run(pool_stacks(running.instances.shells, running.dispatch, only))

    def resize(self, size: NodeSpec) -> None:
        """
        Change how many nodes the pool has, which stays elastic if it is; returns at once.

        Args:
            size: A number, or what replaces the bounds, as for `nodes=`; `sky.Nodes(4)` makes the size fixed.

        Raises:
            ConfigError: If it is no number of nodes, or one that the bounds of an elastic pool exclude.
            PoolClosedError: If the pool is being left.
        """
        self._running.sizing.resize(size)

    def refresh(self) -> None:
        """
        Restart every worker, so that changed files of local modules are imported again.

        Waits until no call is under way.
        """
        running = self._running
        running.engine.run(running.refresh())

    def forward(self, remote_port: int, local_port: int = 0, *, node: int | Literal["head"] = 0) -> Forward:
        """
        Forward a port of a node to this machine, for a dashboard or a service that listens on the node's 127.0.0.1.

        Args:
            remote_port: The port there.
            local_port: The port here; 0 takes any that is free.
            node: Index of the node, or `"head"`.

        Returns:
            What has `port`, `address` and `url`; it ends with `close()`, its `with` block, or the pool.

        Raises:
            ConfigError: If there is no such port or node, or the port here is taken.
            UsageError: If the pool has drained to zero.
        """
        remote, local = port(remote_port, "remote_port"), port(local_port, "local_port", least=0)
        running = self._running
        running.whole.check_awake("pool.forward")
        running.check_node(node, "node")
        forward: Forward = running.engine.run(running.forwards.open(node, remote, local))
        return forward

    def open(self) -> None:
        """
        Open the pool, without making it the one that `sky` means; `close` terminates its nodes.

        Raises:
            PoolClosedError: If the pool was entered before.
            BudgetExceededError: If the nodes would cost more than `budget=` as soon as they are rented.
            SkywardError: If the nodes can't be had; nothing is left rented then.
        """
        from skyward.engine.nodes.waiting_agents import waiting_agents

        with self._entering:
            if self._used:
                raise PoolClosedError(
                    f"The pool {self.name!r} was entered before, and a pool is entered once. Make another one."
                )
            self._used = True
        with waiting_agents.started(*_early(self._request.specs)):
            self._open_nodes()

    def _open_nodes(self) -> None:
        from skyward.engine.instances.meter import Meter
        from skyward.engine.pool.opening import open_pool

        self._meter = Meter(budget=self._request.options.budget, pool=self.name)
        try:
            pool_id = secrets.token_hex(4)
            heard = self._handlers, self._followers
            open_pool(self, self._request, pool_id, *heard, self._meter, self._begun, self._usable)
        except BaseException as error:
            # Unless that was done: an interrupt may come when the pool has just been opened.
            self.close(error)
            if isinstance(error, SkywardError):
                raise error.with_traceback(None)  # noqa: B904  # the same, without thirty frames of the engine
            raise

    def break_off(self) -> None:
        """
        Stop opening, in whichever thread that is under way: it raises there once all that was rented is terminated.
        """
        for running in list(self._begun):
            running.engine.post(running.break_off)

    def skip_handlers(self) -> None:
        """Wait no longer for handlers, in whichever thread the pool is being closed; its log has the rest."""
        if (opened := self._open) is not None:
            opened.delivery.skip()

    def close(self, error: BaseException | None = None) -> None:
        """
        Terminate the nodes, and wait for handlers as long as they get on; harmless when that is done.

        Args:
            error: What the pool is left by; with one, calls under way are cancelled instead of waited for.

        Raises:
            BudgetExceededError: If the pool was stopped because of its budget, and no call has raised this yet.
            LeftBehindError: If machines could not be ended; an `error` bears that as a note instead.
        """
        from skyward.engine.pool.opening import close_pool

        if self._open is not None:
            try:
                close_pool(self._open, error)
            finally:
                self._open = None

    def __enter__(self) -> Self:
        self.open()
        try:
            self._tokens.append(current_pool.set(self))
        except BaseException as error:
            # Interrupted before the block began, whose end would have done it.
            self.close(error)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        current_pool.reset(self._tokens.pop())
        self.close(error)

    async def __aenter__(self) -> Self:
        from skyward.engine.pool.async_block import opened

        await opened(self)
        self._tokens.append(current_pool.set(self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        from skyward.engine.pool.async_block import closed

        current_pool.reset(self._tokens.pop())
        await closed(self, error)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"cannot pickle the pool {self.name!r}")

    def __repr__(self) -> str:
        return f"<pool {self.name!r}, {'open' if self.is_active else 'not open'}>"

    def _usable(self, opened: OpenPool | None) -> None:
        self._open = opened

    @property
    def _running(self) -> Running:
        if self._open is None:
            state = "closed" if self._used else "not open yet: use it inside `with sky.Compute(...) as pool:`"
            raise PoolClosedError(f"The pool {self.name!r} is {state}.", pool=self.name)
        self._open.running.engine.check()
        return self._open.running

    @property
    def _collections(self) -> Collections:
        # Raises if it is not open.
        _ = self._running
        assert self._open is not None
        return self._open.collections.get()


Compute = Pool


def _read_named(name: str) -> Any:
    from skyward.engine.pool.pool_file import read_named
    from skyward.registry import plugin, provider

    return read_named(name, provider_of=provider, plugin_of=plugin)


def _early(specs: Sequence[Spec]) -> tuple[int, Mapping[str, str]]:
    """Return how many agents start before anything else, and their environment: those of nodes on this machine."""
    spec = specs[0]
    here = spec.provider is None
    if spec.provider is not None:
        from skyward.providers.local import Local

        here = isinstance(spec.provider, Local)
    return (spec.nodes.desired if here and spec.nodes.min != 0 and len(specs) == 1 else 0), {
        **os.environ,
        **spec.image.env,
    }
