"""What a plugin raises, with the plugin's name on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, TypeVar

from skyward.errors import PluginError, SkywardError

__all__ = ["Entered", "attributed", "expect"]

T = TypeVar("T")


class Entered:
    """Hold a plugin's context manager, and blame the plugin for what it raises itself."""

    def __init__(self, name: str, hook: str, context: AbstractContextManager[object]) -> None:
        self._name = name
        self._hook = hook
        self._context = context

    def __enter__(self) -> None:
        with attributed(self._name, self._hook):
            self._context.__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        try:
            self._context.__exit__(kind, error, tb)
        except (Exception, SystemExit) as failure:
            if failure is error:
                return
            blamed = _failure(self._name, self._hook, failure, " on its way out")
            if error is None:
                raise blamed from failure
            # What went wrong first is what the user has to see.
            error.add_note(str(blamed))


@contextmanager
def attributed(name: str, hook: str, allowed: type[SkywardError] = PluginError) -> Iterator[None]:
    """Attribute what is raised inside to a plugin; what is allowed passes as it is."""
    try:
        yield
    except allowed as error:
        error.add_note(f"Raised by plugin {name!r} in {hook}.")
        raise
    except (Exception, SystemExit) as error:
        raise _failure(name, hook, error) from error


def _failure(name: str, hook: str, error: BaseException, where: str = "") -> PluginError:
    """Return the error that blames a plugin."""
    return PluginError(
        f"Plugin {name!r} failed in {hook}{where}: {type(error).__name__}: {error}.".replace("..", "."),
        plugin=name,
        hook=hook,
    )


def expect(value: Any, kind: type[T]) -> T:
    """Return what a hook returned, if it is what it has to be."""
    if not isinstance(value, kind):
        raise TypeError(f"it must return {kind.__name__}, not {value!r}")
    return value
