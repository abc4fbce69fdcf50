"""
Which prints of a task are seen, and where: `stdout`, `stderr`, `silent`, `redirect_output`.

They act on what the call that asks for it prints, and on no other call: Python code, threads, and processes that it
starts, and C code as far as `descriptor_routing` can tell whose it is.
"""

from __future__ import annotations

import contextlib
import functools
import io
import threading
import types

from skyward.node.task import runtime
from skyward.node.worker import routes
from skyward.node.worker.descriptor_lines import DescriptorLines
from skyward.node.worker.print_routing import routed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterator
    from typing import Any, Literal, Protocol, TypeAlias, TypeVar

    from skyward.model.instances.instance import InstanceInfo

    F = TypeVar("F", bound=Callable[..., Any])
    Only: TypeAlias = Literal["head"] | Callable[[InstanceInfo], bool]
    Route: TypeAlias = tuple[routes.Sink | None, routes.Sink | None]

    class Decorator(Protocol):
        """Return a function with its output filtered."""

        def __call__(self, fn: F, /) -> F: ...


__all__ = ["CallbackWriter", "redirect_output", "silent", "stderr", "stdout"]

_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


def stdout(*, only: Only) -> Decorator:
    """
    Show what a function prints on some ranks only.

    Stands above or below `@sky.function`; functions may be plain, generators or `async def`.

    Args:
        only: `"head"` for the first of all ranks, or a predicate that is asked with the rank's `InstanceInfo` at the
            beginning of each call.

    Raises:
        ConfigError: If `only` is neither.

    >>> @stdout(only="head")
    ... def train() -> None:
    ...     print("seen once, however many ranks there are")
    >>> train()
    seen once, however many ranks there are
    """
    return _Filter(stdout=_checked("stdout", only))


def stderr(*, only: Only) -> Decorator:
    """
    Show what a function writes to stderr on some ranks only.

    Stands above or below `@sky.function`; functions may be plain, generators or `async def`.

    Args:
        only: `"head"` for the first of all ranks, or a predicate that is asked with the rank's `InstanceInfo` at the
            beginning of each call.

    Raises:
        ConfigError: If `only` is neither.

    >>> @stderr(only=lambda info: info.node < 2)
    ... def train() -> int:
    ...     return 1
    >>> train()
    1
    """
    return _Filter(stderr=_checked("stderr", only))


def silent(fn: F, /) -> F:
    """
    Show nothing of what a function prints, on any rank.

    Stands above or below `@sky.function`; functions may be plain, generators or `async def`.

    Args:
        fn: The function.

    Raises:
        UsageError: If it is no function.

    >>> @silent
    ... def train() -> int:
    ...     print("not to be seen")
    ...     return 1
    >>> train()
    1
    """
    return _Filter(stdout=_nowhere, stderr=_nowhere)(fn)


@contextlib.contextmanager
def redirect_output(callback: Callable[[str], object]) -> Iterator[tuple[CallbackWriter, CallbackWriter]]:
    """
    Pass each line that is printed to a callback instead of showing it.

    The callback is called in the thread that prints, and for what C code and processes print in a thread of its own
    or in one that prints just then; what it prints itself goes where it would go without this.

    Args:
        callback: Takes a line without its newline.

    Raises:
        ConfigError: If `callback` cannot be called.

    >>> lines = []
    >>> with redirect_output(lines.append):
    ...     print("captured")
    >>> lines
    ['captured']
    """
    outer = routes.current_route()
    out, err = CallbackWriter(callback), CallbackWriter(callback)
    captured = DescriptorLines((out._deliver, err._deliver))
    for fd, writer in enumerate((out, err), 1):
        writer._outer, writer._captured, writer._fd = outer, captured, fd
    try:
        with routed(out, err):
            yield out, err
    finally:
        captured.end()
        # Closed, they have nothing to do when they are collected, at any time in any thread.
        out.close()
        err.close()


class CallbackWriter(io.TextIOBase):
    """
    Be a text stream that hands each line to a callback.

    Args:
        callback: Takes a line without its newline; called in the thread that writes.

    Raises:
        ConfigError: If it cannot be called.

    >>> lines = []
    >>> writer = CallbackWriter(lines.append)
    >>> writer.write("one\\ntwo")
    7
    >>> writer.flush()
    >>> lines
    ['one', 'two']
    """

    def __init__(self, callback: Callable[[str], object]) -> None:
        # First, because a stream whose construction failed is flushed all the same.
        self._lock = threading.Lock()
        self._rest = ""
        self._outer: Route | None = None
        self._captured: DescriptorLines | None = None
        self._fd = 0
        self._callback = _callback(callback)

    encoding = "utf-8"
    errors = "backslashreplace"

    def write(self, text: str, /) -> int:
        """Pass on the lines that this completes, and keep the rest."""
        if self._captured is not None:
            if self._captured.of_parent:
                self._captured.write(self._fd, text)
                return len(text)
            self._captured.catch_up()
        with self._lock:
            *lines, self._rest = (self._rest + text).split("\n")
        self._deliver(lines)
        return len(text)

    def flush(self) -> None:
        """Pass on what there is of a line."""
        if self._captured is not None and self._captured.of_parent:
            return
        with self._lock:
            rest, self._rest = self._rest, ""
        self._deliver([rest] if rest else [])

    def writable(self) -> bool:
        """Return True."""
        return True

    def descriptor(self) -> int | None:
        """Return where processes write, and C code, whose lines are to go to the callback; None if there is none."""
        return None if self._captured is None else self._captured.descriptor(self._fd)

    def _deliver(self, lines: list[str]) -> None:
        if lines:
            with routes.on_route(self._outer):
                for line in lines:
                    self._callback(line)


def _nowhere(info: InstanceInfo) -> bool:
    return False


def _at_head(info: InstanceInfo) -> bool:
    return info.is_head


def _callback(given: object) -> Any:
    if not callable(given):
        from skyward.errors import ConfigError

        raise ConfigError(f"callback is {given!r}; it must be a function that takes a line of text.")
    return given


def _checked(where: str, only: object) -> Any:
    if only == "head":
        return _at_head
    if not callable(only):
        from difflib import get_close_matches

        from skyward.errors import ConfigError

        near = ' Did you mean "head"?' if get_close_matches(str(only).lower(), ["head"]) else ""
        raise ConfigError(
            f'{where}(only={only!r}): only must be "head" or a function that takes an InstanceInfo.{near}'
        )
    return only


class _Filter:
    """Wrap functions so that their output is seen where predicates say so; pickles with what it wraps."""

    def __init__(
        self,
        *,
        stdout: Callable[[InstanceInfo], bool] | None = None,
        stderr: Callable[[InstanceInfo], bool] | None = None,
    ) -> None:
        self._predicates = (stdout, stderr)

    def __call__(self, fn: F, /) -> F:
        filtered: F = self._applied(fn)
        return filtered

    def _applied(self, fn: Any) -> Any:
        if callable(wrapped := getattr(fn, "wrapped", None)):
            return wrapped(self)
        if not callable(fn):
            from skyward.errors import UsageError

            raise UsageError(f"Output is filtered of a function, and this is a {type(fn).__name__}: {fn!r}.")
        return _wrapper(self, fn)

    def sinks(self) -> Route:
        """Ask the predicates about this rank."""
        out, err = self._predicates
        quiet = routes.Silence()
        return (
            None if out is None or out(runtime.instance_info()) else quiet,
            None if err is None or err(runtime.instance_info()) else quiet,
        )

    def call(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function, and filter what it writes now and what its generator or coroutine writes later."""
        sinks = self.sinks()
        with routed(*sinks):
            result = fn(*args, **kwargs)
        if isinstance(result, types.GeneratorType):
            return _generator(sinks, result)
        if isinstance(result, types.CoroutineType):
            return _coroutine(sinks, result)
        if isinstance(result, types.AsyncGeneratorType):
            return _async_generator(sinks, result)
        return result


def _wrapper(chosen: _Filter, fn: Callable[..., Any]) -> Any:
    """Make a function of the same kind, because other decorators and event loops look at the kind."""
    flags = getattr(getattr(fn, "__code__", None), "co_flags", 0)
    run: Any
    if flags & _GENERATOR:

        def run(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
            return (yield from chosen.call(fn, args, kwargs))

    elif flags & _COROUTINE:

        async def run(*args: Any, **kwargs: Any) -> Any:
            return await chosen.call(fn, args, kwargs)

    elif flags & _ASYNC_GENERATOR:

        async def run(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
            items = chosen.call(fn, args, kwargs)
            async with contextlib.aclosing(items):
                async for item in items:
                    yield item

    else:

        def run(*args: Any, **kwargs: Any) -> Any:
            return chosen.call(fn, args, kwargs)

    return functools.update_wrapper(run, fn)


def _generator(sinks: Route, items: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run each step of a generator on a route, and what uses its items off it."""
    step: Callable[[Any], Any] = items.send
    value: Any = None
    while True:
        with routed(*sinks):
            try:
                item = step(value)
            except StopIteration as end:
                return end.value
        try:
            value = yield item
            step = items.send
        except GeneratorExit:
            with routed(*sinks):
                items.close()
            raise
        except BaseException as error:
            value, step = error, items.throw


async def _coroutine(sinks: Route, running: Coroutine[Any, Any, Any]) -> Any:
    with routed(*sinks):
        return await running


async def _async_generator(sinks: Route, items: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """Run each step of an async generator on a route, and what uses its items off it."""
    step: Callable[[Any], Any] = items.asend
    value: Any = None
    while True:
        with routed(*sinks):
            try:
                item = await step(value)
            except StopAsyncIteration:
                return
        try:
            value = yield item
            step = items.asend
        except GeneratorExit:
            with routed(*sinks):
                await items.aclose()
            raise
        except BaseException as error:
            value, step = error, items.athrow
